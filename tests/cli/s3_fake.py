"""A bucket in memory that answers as S3 does, and does wrong when it is told to.

Whether signatures are right is asked of a real server (test_s3.py); this one is
for what a real one does not do on demand. A fault is a function of a request
that answers it, or returns False for the bucket to do it.
"""

import base64
import hashlib
import re
import urllib.parse
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

from servers import Server, program

KEY, SECRET = "AKIAFAKE", "s3cr3t/that+nobody=sees"


class Version:
    def __init__(self, number, body):
        self.id, self.body = f"v{number}", body  # body None: a delete marker


class Bucket:
    """Its name is "bucket"; conditional: honours, ignores or unknown; versioned keeps all
    that was put; locked keeps it whatever is asked."""

    def __init__(self, conditional="honours", versioned=False, locked=False,
                 page=1000):
        self.keys, self.uploads, self.number = {}, {}, 0
        self.conditional, self.versioned = conditional, versioned
        self.locked, self.page = locked, page
        self.fault = lambda asked: False
        self.server = Server(self.answer)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *args):
        self.server.__exit__(*args)

    @property
    def asked(self):
        return self.server.asked

    def env(self, **more):
        return {"AWS_ENDPOINT_URL": self.server.url, "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_SESSION_TOKEN": "", "AWS_MAX_ATTEMPTS": "3",
                "HOME": "/nonexistent", **more}

    def current(self, key):
        versions = self.keys.get(key, [])
        return versions[-1].body if versions else None

    def put(self, key, body):
        self.number += 1
        version = Version(self.number, body)
        if not self.versioned:
            self.keys[key] = []
        self.keys.setdefault(key, []).append(version)

    # ---- answers -----------------------------------------------------------

    def answer(self, asked):
        asked.url = urllib.parse.urlsplit(asked.path)
        asked.query = dict(urllib.parse.parse_qsl(
            asked.url.query, keep_blank_values=True))
        path = urllib.parse.unquote(asked.url.path)
        asked.key = path.split("/", 2)[2]
        if self.fault(asked):
            return
        if not path.startswith("/bucket/"):
            return refuse(asked, 404, "NoSuchBucket")
        verb = asked.method + ("_key" if asked.key else "")
        for name, run in VERBS.items():
            want, parameter = name
            if want == verb and (not parameter or parameter in asked.query):
                return run(self, asked)
        return refuse(asked, 400, "BadRequest")

    def do_get(self, asked):
        body = self.current(asked.key)
        if body is None:
            more = [("x-amz-delete-marker", "true")] if self.keys.get(
                asked.key) else []
            return refuse(asked, 404, "NoSuchKey", headers=more)
        wanted = asked.headers.get("Range")
        if not wanted:
            return asked.say(200, body)
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted).groups()
        first, last = int(first), min(int(last or 1 << 62), len(body) - 1)
        if first >= len(body):
            return refuse(asked, 416, "InvalidRange",
                          headers=[("Content-Range", f"bytes */{len(body)}")])
        return asked.say(206, body[first:last + 1], [
            ("Content-Range", f"bytes {first}-{last}/{len(body)}")])

    def do_head(self, asked):
        body = self.current(asked.key)
        asked.handler.send_response(200 if body is not None else 404)
        asked.handler.send_header("Content-Length", str(len(body or b"")))
        asked.handler.end_headers()

    def do_put(self, asked):
        if "If-None-Match" in asked.headers:
            if self.conditional == "unknown":
                return refuse(asked, 501, "NotImplemented")
            if (self.conditional == "honours"
                    and self.current(asked.key) is not None):
                return refuse(asked, 412, "PreconditionFailed")
        self.put(asked.key, asked.body)
        return asked.say(200, b"", [("ETag", '"x"')])

    def do_list(self, asked):
        prefix = asked.query.get("prefix", "")
        after = asked.query.get("continuation-token", "")
        keys = sorted(key for key in self.keys if key.startswith(prefix)
                      and key > after and self.current(key) is not None)
        page, rest = keys[:self.page], keys[self.page:]
        rows = "".join(
            f"<Contents><Key>{quoted(key)}</Key>"
            f"<Size>{len(self.current(key))}</Size></Contents>"
            for key in page)
        more = (f"<NextContinuationToken>{escape(page[-1])}"
                f"</NextContinuationToken>" if rest else "")
        say_xml(asked, f"<ListBucketResult><IsTruncated>{str(bool(rest)).lower()}"
                       f"</IsTruncated>{more}{rows}</ListBucketResult>")

    def do_versions(self, asked):
        prefix = asked.query.get("prefix", "")
        after = (asked.query.get("key-marker", ""),
                 asked.query.get("version-id-marker", ""))
        every = [(key, version) for key in sorted(self.keys)
                 if key.startswith(prefix)
                 for version in reversed(self.keys[key])]
        places = [(key, version.id) for key, version in every]
        start = places.index(after) + 1 if after[0] else 0
        page, rest = every[start:start + self.page], every[start + self.page:]
        rows = ""
        for key, version in page:
            tag = "DeleteMarker" if version.body is None else "Version"
            size = (f"<Size>{len(version.body)}</Size>"
                    if version.body is not None else "")
            rows += (f"<{tag}><Key>{quoted(key)}</Key><VersionId>{version.id}"
                     f"</VersionId>{size}</{tag}>")
        more = (f"<NextKeyMarker>{quoted(page[-1][0])}</NextKeyMarker>"
                f"<NextVersionIdMarker>{page[-1][1].id}</NextVersionIdMarker>"
                if rest else "")
        say_xml(asked, f"<ListVersionsResult><IsTruncated>"
                       f"{str(bool(rest)).lower()}</IsTruncated>{more}{rows}"
                       f"</ListVersionsResult>")

    def do_versioning(self, asked):
        status = "<Status>Enabled</Status>" if self.versioned else ""
        say_xml(asked, f"<VersioningConfiguration>{status}"
                       f"</VersioningConfiguration>")

    def do_lock(self, asked):
        if not self.locked:
            return refuse(asked, 404, "ObjectLockConfigurationNotFoundError")
        return say_xml(asked, "<ObjectLockConfiguration><ObjectLockEnabled>"
                              "Enabled</ObjectLockEnabled>"
                              "</ObjectLockConfiguration>")

    def do_delete(self, asked):
        digest = base64.b64encode(hashlib.md5(asked.body).digest()).decode()
        if asked.headers.get("Content-MD5") != digest:
            return refuse(asked, 400, "BadDigest")
        rows = ""
        for one in ET.fromstring(asked.body).findall("Object"):
            key, version = one.findtext("Key"), one.findtext("VersionId")
            if self.locked and version:
                rows += (f"<Error><Key>{escape(key)}</Key><Code>AccessDenied"
                         f"</Code></Error>")
                continue
            self.remove(key, version)
            rows += f"<Deleted><Key>{escape(key)}</Key></Deleted>"
        return say_xml(asked, f"<DeleteResult>{rows}</DeleteResult>")

    def remove(self, key, version):
        if version:
            self.keys[key] = [one for one in self.keys.get(key, [])
                              if one.id != version]
        elif self.versioned and key in self.keys:
            self.put(key, None)
        else:
            self.keys.pop(key, None)
        if not self.keys.get(key, True):
            del self.keys[key]

    # ---- uploads in parts --------------------------------------------------

    def do_begin(self, asked):
        self.number += 1
        self.uploads[f"u{self.number}"] = {"key": asked.key, "parts": {},
                                           "begun": "2999-01-01T00:00:00Z"}
        say_xml(asked, f"<InitiateMultipartUploadResult><UploadId>"
                       f"u{self.number}</UploadId>"
                       f"</InitiateMultipartUploadResult>")

    def do_part(self, asked):
        upload = self.uploads[asked.query["uploadId"]]
        upload["parts"][int(asked.query["partNumber"])] = asked.body
        tag = hashlib.md5(asked.body).hexdigest()
        asked.say(200, b"", [("ETag", f'"{tag}"')])

    def do_complete(self, asked):
        upload = self.uploads.pop(asked.query["uploadId"], None)
        if not upload:
            return refuse(asked, 404, "NoSuchUpload")
        parts = [(int(part.findtext("PartNumber")), part.findtext("ETag"))
                 for part in ET.fromstring(asked.body).findall("Part")]
        for number, tag in parts:
            body = upload["parts"][number]
            assert tag.strip('"') == hashlib.md5(body).hexdigest()
        self.put(asked.key, b"".join(upload["parts"][number]
                                     for number, _ in parts))
        return say_xml(asked, "<CompleteMultipartUploadResult/>")

    def do_abort(self, asked):
        self.uploads.pop(asked.query["uploadId"], None)
        asked.handler.send_response(204)
        asked.handler.end_headers()

    def do_uploads(self, asked):
        rows = "".join(
            f"<Upload><Key>{escape(one['key'])}</Key><UploadId>{number}"
            f"</UploadId><Initiated>{one['begun']}</Initiated></Upload>"
            for number, one in self.uploads.items())
        say_xml(asked, f"<ListMultipartUploadsResult>{rows}"
                       f"</ListMultipartUploadsResult>")

    def do_parts(self, asked):
        parts = self.uploads[asked.query["uploadId"]]["parts"]
        rows = "".join(f"<Part><Size>{len(body)}</Size></Part>"
                       for body in parts.values())
        say_xml(asked, f"<ListPartsResult>{rows}</ListPartsResult>")


VERBS = {
    ("GET", "list-type"): Bucket.do_list,
    ("GET", "versions"): Bucket.do_versions,
    ("GET", "versioning"): Bucket.do_versioning,
    ("GET", "object-lock"): Bucket.do_lock,
    ("GET", "uploads"): Bucket.do_uploads,
    ("POST", "delete"): Bucket.do_delete,
    ("GET_key", "uploadId"): Bucket.do_parts,
    ("GET_key", None): Bucket.do_get,
    ("HEAD_key", None): Bucket.do_head,
    ("PUT_key", "uploadId"): Bucket.do_part,
    ("PUT_key", None): Bucket.do_put,
    ("POST_key", "uploads"): Bucket.do_begin,
    ("POST_key", "uploadId"): Bucket.do_complete,
    ("DELETE_key", "uploadId"): Bucket.do_abort,
}


def quoted(key):
    return urllib.parse.quote(key, safe="/")


def say_xml(asked, text, status=200, headers=()):
    asked.say(status, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode(),
              [("Content-Type", "application/xml"), *headers])


def refuse(asked, status, code, headers=(), more=""):
    say_xml(asked, f"<Error><Code>{code}</Code><Message>no: {code}</Message>"
                   f"{more}</Error>", status, headers)
    return True


def calls(bucket, *rows, url="s3://bucket/p", **env):
    """What a backend makes of these calls."""
    import json
    return program("ask-backend", url, json.dumps(rows),
                   env=bucket.env(**env))[1]


def once(fault):
    """The fault for the first request that it fits, and for no other."""
    done = []

    def first(asked):
        if done or not fault(asked):
            return False
        done.append(True)
        return True

    return first
