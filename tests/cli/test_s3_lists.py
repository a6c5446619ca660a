"""Lists that are cut, stale or strange; what goes from a bucket, with all its
versions; what killed writers have left there."""

import pytest

from s3_fake import Bucket, calls, once, refuse, say_xml

LIST = ["list", ""]


def names(*rows):
    return {"names": [list(row) for row in rows]}


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
@pytest.mark.parametrize("versioned", [False, True])
def test_pages_are_read_to_the_last(page, versioned):
    with Bucket(page=page, versioned=versioned) as bucket:
        for key in ("p/a/1", "p/a/2", "p/a/2", "p/b", "p/.ballast", "q/x",
                    "pp/x"):
            bucket.put(key, b"xy")
        assert calls(bucket, LIST, ["list", "a/"]) == [
            names(("a/1", 2), ("a/2", 2), ("b", 2)),
            names(("a/1", 2), ("a/2", 2))]


ODD = ["a b", "a+b", "a%2Bb", "a&b", "a<b>", "a'b\"", "é", "a\nb", "a;b=c",
       "a?b", "a#b", "~a", "a:b@c", "a,b!$*()", "%41", "\u00a0"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_put_read_listed_and_removed(name):
    with Bucket() as bucket:
        key = f"x/{name}"
        rows = calls(bucket, ["put", key, "hello", 1], ["get", key, 1, 2],
                     ["list", "x/"], ["remove", [key]], ["size", key])
        assert rows[:4] == [{"kept": False}, {"text": "el"}, names((key, 5)),
                            {"freed": 5}]
        assert rows[4]["error"] == "not-found"
        assert not bucket.keys


def test_what_is_no_run_is_passed_over():
    with Bucket() as bucket:
        for key in ("p/a/", "p/.b", "p/a/.c", "p/d//e", "p/", "p//f", "p/g"):
            bucket.put(key, b"")
        assert calls(bucket, LIST) == [names(("g", 0))]


def page(rows="", truncated="false", more=""):
    return (f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{rows}"
            f"{more}</ListBucketResult>")


def entry(key="p/a", size="1"):
    return f"<Contents><Key>{key}</Key><Size>{size}</Size></Contents>"


BAD = {
    "nothing": "",
    "cut": page(entry())[:-5],
    "not a list": "<html></html>",
    "an error": "<Error><Code>SlowDown</Code></Error>",
    "no end told": "<ListBucketResult></ListBucketResult>",
    "neither": page(truncated="maybe"),
    "leads nowhere": page(truncated="true"),
    "no key": page("<Contents><Size>1</Size></Contents>"),
    "no size": page("<Contents><Key>p/a</Key></Contents>"),
    "negative": page(entry(size="-1")),
    "too large": page(entry(size="18446744073709551616")),
    "other prefix": page(entry("q/a")),
    "bad encoding": page(entry("p/%4")),
    "entities": page(entry("p/&b;")),
    "a doctype": '<!DOCTYPE a [<!ENTITY b "c">]>' + page(),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_list_that_is_not_whole_is_an_error(bad):
    def fault(asked):
        if "list-type" not in asked.query:
            return False
        say_xml(asked, BAD[bad])
        return True

    with Bucket() as bucket:
        bucket.fault = fault
        (row,) = calls(bucket, LIST)
        assert row["error"] in ("corrupt", "io", "usage"), row


def test_a_list_that_leads_to_itself_ends():
    def fault(asked):
        if "list-type" not in asked.query:
            return False
        say_xml(asked, page(entry(), "true", "<NextContinuationToken>x"
                                             "</NextContinuationToken>"))
        return True

    with Bucket() as bucket:
        bucket.fault = fault
        (row,) = calls(bucket, LIST)
        assert row["error"] == "io" and "nowhere" in row["text"]


@pytest.mark.parametrize("page_size", [1, 1000])
def test_a_list_that_fails_half_way_is_an_error(page_size):
    with Bucket(page=page_size) as bucket:
        bucket.put("p/a", b"x")
        bucket.put("p/b", b"x")
        bucket.fault = lambda asked: (
            ("continuation-token" in asked.query or page_size > 1)
            and "list-type" in asked.query
            and refuse(asked, 403, "AccessDenied"))
        (row,) = calls(bucket, LIST)
        assert row["error"] == "io"


# ---- what goes ---------------------------------------------------------------


def test_what_a_stale_list_does_not_have_goes_all_the_same():
    with Bucket() as bucket:
        for i in range(40):
            bucket.put(f"p/a/{i:02}", b"xyz")
        bucket.fault = once(lambda asked: "list-type" in asked.query
                            and (say_xml(asked, page()) or True))
        every = [f"a/{i:02}" for i in range(40)]
        assert calls(bucket, ["remove", every], LIST) == [
            {"freed": 0}, names()]
        assert not bucket.keys


@pytest.mark.parametrize("count", [1, 3, 30, 1001, 2500])
def test_any_number_goes_and_others_stay(count):
    with Bucket() as bucket:
        for i in range(count):
            bucket.put(f"p/a/{i}", b"xyz")
        for key in ("p/a/x", "p/b", "p/a/1x", "q/a/0"):
            bucket.put(key, b"stay")
        assert calls(bucket, ["remove", [f"a/{i}" for i in range(count)]]) == [
            {"freed": 3 * count}]
        assert sorted(bucket.keys) == ["p/a/1x", "p/a/x", "p/b", "q/a/0"]


@pytest.mark.parametrize("count", [2, 40])
def test_every_version_goes_and_every_marker(count):
    with Bucket(versioned=True, page=7) as bucket:
        for i in range(count):
            bucket.put(f"p/a/{i}", b"first")
            bucket.put(f"p/a/{i}", b"second!")
        bucket.remove("p/a/1", None)
        bucket.put("p/a/1x", b"stays")
        rows = calls(bucket, ["remove", [f"a/{i}" for i in range(count)]])
        assert rows == [{"freed": 12 * count}]
        assert list(bucket.keys) == ["p/a/1x"]


def test_what_only_looks_deleted_is_not_absent():
    with Bucket(versioned=True) as bucket:
        bucket.put("p/a/b", b"hello")
        bucket.remove("p/a/b", None)
        size, listed, removed, gone = calls(
            bucket, ["size", "a/b"], LIST, ["remove", ["a/b"]], ["size", "a/b"])
        assert size["error"] == "io" and "older version" in size["text"]
        assert listed == names(("a/b", 5))
        assert removed == {"freed": 5}
        assert gone["error"] == "not-found"


def test_what_a_lock_holds_is_not_said_to_be_gone():
    with Bucket(versioned=True, locked=True) as bucket:
        bucket.put("p/a/b", b"hello")
        (row,) = calls(bucket, ["remove", ["a/b"]])
        assert row["error"] == "io" and "AccessDenied" in row["text"]
        assert "lock" in row["hint"]
        assert bucket.current("p/a/b") == b"hello"


@pytest.mark.parametrize("call", [LIST, ["remove", ["a/b"]]])
def test_a_bucket_that_does_not_say_whether_it_keeps_versions(call):
    with Bucket() as bucket:
        bucket.put("p/a/b", b"hello")
        bucket.fault = lambda asked: ("versioning" in asked.query
                                      and refuse(asked, 403, "AccessDenied"))
        (row,) = calls(bucket, call)
        assert row["error"] == "io" and "versions" in row["text"]
        bucket.fault = lambda asked: ("versioning" in asked.query
                                      and refuse(asked, 501, "NotImplemented"))
        assert "error" not in calls(bucket, call)[0]


@pytest.mark.parametrize("answer", [
    "<DeleteResult></DeleteResult>", "<DeleteResult>", "<html></html>",
    "<DeleteResult><Error><Key>p/a/b</Key><Code>InternalError</Code></Error>"
    "</DeleteResult>"])
def test_what_is_not_confirmed_is_not_gone(answer):
    with Bucket() as bucket:
        bucket.put("p/a/b", b"hello")
        bucket.fault = lambda asked: ("delete" in asked.query
                                      and (say_xml(asked, answer) or True))
        (row,) = calls(bucket, ["remove", ["a/b"]])
        assert row["error"] in ("io", "corrupt")


# ---- in parts ----------------------------------------------------------------

LONG = 64 * 1024 * 1024 + 1


def put_long(bucket, keeps=1):
    """An argument cannot be so long: the program makes it of a number."""
    return calls(bucket, ["put", "a/b", LONG, keeps])


@pytest.mark.parametrize("fault", [None, "PUT", "POST"])
def test_what_is_long_goes_in_parts_and_is_seen_whole(fault):
    with Bucket() as bucket:
        if fault:
            bucket.fault = once(lambda asked: asked.method == fault
                                and refuse(asked, 503, "SlowDown"))
        assert put_long(bucket) == [{"kept": False}]
        body = bucket.current("p/a/b")
        assert len(body) == LONG and body == b"x" * LONG
        assert not bucket.uploads
        assert put_long(bucket) == [{"kept": True}]


def test_an_upload_whose_end_was_lost_is_looked_for():
    with Bucket() as bucket:
        def lost(asked):
            if asked.method != "POST" or "uploadId" not in asked.query:
                return False
            upload = bucket.uploads.pop(asked.query["uploadId"])
            bucket.put(asked.key, b"".join(upload["parts"].values()))
            asked.raw(b"")
            return True

        bucket.fault = once(lost)
        assert put_long(bucket) == [{"kept": False}]


def test_an_upload_that_fails_at_its_end_is_an_error_and_given_up():
    with Bucket() as bucket:
        bucket.fault = lambda asked: (
            asked.method == "POST" and "uploadId" in asked.query
            and (say_xml(asked, "<Error><Code>InternalError</Code></Error>")
                 or True))
        (row,) = put_long(bucket)
        assert row["error"] == "io" and "InternalError" in row["text"]
        assert not bucket.uploads and not bucket.keys


def test_uploads_that_are_old_are_swept():
    with Bucket() as bucket:
        for number, key, begun in (("old", "p/a/b", "2020-01-01T00:00:00.000Z"),
                                   ("new", "p/a/c", "2999-01-01T00:00:00.000Z"),
                                   ("odd", "p/a/d", "yesterday"),
                                   ("not", "q/a/b", "2020-01-01T00:00:00.000Z")):
            bucket.uploads[number] = {"key": key, "parts": {1: b"abc"},
                                      "begun": begun}
        assert calls(bucket, ["sweep", 1]) == [{"bytes": 3}]
        assert len(bucket.uploads) == 4
        assert calls(bucket, ["sweep", 0]) == [{"bytes": 3}]
        assert list(bucket.uploads) == ["new", "odd", "not"]
