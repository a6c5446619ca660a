/* XML as S3 answers it; what is refused of the rest. */
#include <string.h>

#include "core/xml.h"
#include "support/check.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static int note(void *ctx, bal_xml_end end, const char *path, const char *text,
                bal_error *err)
{
    if (end == BAL_XML_OPENS)
        return bal_buf_format(ctx, err, "+%s ", path);
    return bal_buf_format(ctx, err, "-%s[%s] ", path, text);
}

static int walk(bal_buf *to, const char *text)
{
    return bal_xml_walk(text, strlen(text), "answer", note, to, &check_err);
}

/* By the XML recommendation (W3C, 1.0, fifth edition). */
static void elements_open_and_close_with_their_text(void)
{
    static const struct {
        const char *text;
        const char *told;
    } rows[] = {
        { "<a/>", "+a -a[] " },
        { "<a></a>", "+a -a[] " },
        { "<a >x</a >", "+a -a[x] " },
        { "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<a>x</a>\n", "+a -a[x] " },
        { "<a xmlns='http://x/' b=\"'>/\" >x</a>", "+a -a[x] " },
        { "<a><b>1</b> <b>2</b><c/></a>",
          "+a +a/b -a/b[1] +a/b -a/b[2] +a/c -a/c[] -a[] " },
        { "<a>&lt;&amp;&gt;&quot;&apos;</a>", "+a -a[<&>\"'] " },
        { "<a>&#65;&#x42;&#xe9;&#x20ac;&#x1F600;</a>",
          "+a -a[AB\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80] " },
        { "<a>x<!-- no --></a><!-- end -->", "+a -a[x] " },
        { "<a.b-c:d_1/>", "+a.b-c:d_1 -a.b-c:d_1[] " },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_buf) told = { 0 };
        check_row(rows[i].text);
        CHECK_OK(walk(&told, rows[i].text));
        CHECK(!strcmp(bal_buf_string(&told), rows[i].told));
    }
}

static void what_is_not_one_whole_element_is_refused(void)
{
    static const char *const rows[] = {
        "",
        " ",
        "x",
        "<",
        "<a",
        "<a>",
        "<a><b></a>",
        "<a></b>",
        "<a></a",
        "<a/><b/>",
        "<a/>x",
        "</a>",
        "<1/>",
        "< a/>",
        "<a b/>",
        "<a b=c/>",
        "<a b='c/>",
        "<a b='<'/>",
        "<a>&nbsp;</a>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>",
        "<a>&#x110000;</a>",
        "<a>&#;</a>",
        "<a>&#x41</a>",
        "<a>&</a>",
        "<a>\x01</a>",
        "<a>\xff</a>",
        "<a>\xc0\x80</a>",
        "<a><![CDATA[x]]></a>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
        "<a><!-- x</a>",
        "<?xml <a/>",
        "<a><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></a>",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        BAL_LOCAL(bal_buf) told = { 0 };
        check_row(rows[i]);
        CHECK_RC(BAL_ECORRUPT, walk(&told, rows[i]));
        CHECK(!strncmp(check_err.text, "answer: ", 8));
    }
}

static void every_cut_of_an_answer_is_refused(void)
{
    static const char text[] = "<?xml version='1.0'?><a c='d'><b>x&amp;y</b>"
                               "<e/></a>";

    for (size_t len = 0; len < strlen(text); len++) {
        BAL_LOCAL(bal_buf) told = { 0 };
        CHECK_RC(BAL_ECORRUPT,
                 bal_xml_walk(text, len, "answer", note, &told, &check_err));
    }
}

static void texts_and_paths_have_a_longest(void)
{
    BAL_LOCAL(bal_buf) text = { 0 };
    BAL_LOCAL(bal_buf) told = { 0 };

    CHECK_OK(bal_buf_text(&text, "<a>", &check_err));
    while (text.len < BAL_XML_TEXT + 100)
        CHECK_OK(bal_buf_text(&text, "0123456789", &check_err));
    CHECK_OK(bal_buf_text(&text, "</a>", &check_err));
    CHECK_RC(BAL_ECORRUPT, walk(&told, text.data));
    memset(text.data + 1, 'a', BAL_XML_PATH);
    CHECK_RC(BAL_ECORRUPT, walk(&told, text.data));
}

static int stop(void *ctx, bal_xml_end end, const char *path, const char *text,
                bal_error *err)
{
    (void)end;
    (void)path;
    (void)text;
    (void)err;
    (*(int *)ctx)++;
    return BAL_ECANCELLED;
}

static void a_walk_ends_when_told(void)
{
    int calls = 0;

    CHECK_RC(BAL_ECANCELLED, bal_xml_walk("<a><b/></a>", 11, "answer", stop,
                                          &calls, &check_err));
    CHECK(calls == 1);
}

static const check_test tests[] = {
    { TEST(elements_open_and_close_with_their_text) },
    { TEST(what_is_not_one_whole_element_is_refused) },
    { TEST(every_cut_of_an_answer_is_refused) },
    { TEST(texts_and_paths_have_a_longest) },
    { TEST(a_walk_ends_when_told) },
};

CHECK_MAIN(tests)
