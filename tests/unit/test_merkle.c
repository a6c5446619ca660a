/* The tree of RFC 6962 over the eight entries that implementations of
 * Certificate Transparency are tested with. Digests of all paths come from a
 * recursive transcription of the RFC in Python; checks are then turned against
 * every path, and against every path with something wrong. */
#include <string.h>

#include "core/merkle.h"
#include "support/check.h"

enum { MOST = 8, MANY = 1000 };

static const struct {
    const char *data;
    size_t len;
} entries[MOST] = {
    { "", 0 },
    { "\x00", 1 },
    { "\x10", 1 },
    { "\x20\x21", 2 },
    { "\x30\x31", 2 },
    { "\x40\x41\x42\x43", 4 },
    { "\x50\x51\x52\x53\x54\x55\x56\x57", 8 },
    { "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16 },
};

/* By size: the root; the SHA-256 of all audit paths, and of all proofs from 1
 * up to it, with a '|' behind each. */
static const struct {
    const char *root;
    const char *inclusion;
    const char *consistency;
} trees[MOST + 1] = {
    { "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", NULL,
      NULL },
    { "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
      "cbe5cfdf7c2118a9c3d78ef1d684f3afa089201352886449a06a6511cfef74a7",
      "cbe5cfdf7c2118a9c3d78ef1d684f3afa089201352886449a06a6511cfef74a7" },
    { "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
      "4013e11f07c466faa6fe2bd992d8778267e85d5a192f1ed8668a0576a2741fa9",
      "f91fe89a5a4ab4c663777c522362d910f1f42667186ce2d0dbf968df8f16d316" },
    { "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
      "8affac81defdcc982dce8ed1b89af3b71e4bd036cb6e78570b1a03d5b2d65889",
      "b821e06c5dd4154f45c4d5f06edf0020602d5de310b664546b6bdb479bbc02ae" },
    { "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
      "fc9ed3d660aceb5ac48666ad03777a2a86a0f510582f693b0e6f2b6f14054095",
      "2c779145559e80d2055ef79941d35da8de1869fb66b6ff22b9dc3b6415a7c6d9" },
    { "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
      "0be330c4709ab1e1968678d283290de06b634e2ccc50bef169a76b9cbda45a3a",
      "342f418bb00a1e29370a03c75b6ee531e1e076117736dde645e026b727f1ca27" },
    { "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
      "c1fce1a02232d47f55313e2e12b524112e5bdc8fe030c6a09e8ed3e76e4ad463",
      "2c69ea13222643c622f1b62e38275d3494d5a08e2fc2325f284637c46d850c90" },
    { "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
      "a36b6e738efba4e985523f6cbd30387e311fd4ea57cb814ba6fc75a714fc8daa",
      "58560e5fa4ddb2c8713a6ad65bd8f0ea2b1d213390e2e8f2c5e2c3d7848f767d" },
    { "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
      "e66c80cda4e03dcca3d9d70fe3b58122972582ec388024042406c6f70e8b598e",
      "57afbe45b406859072a8ec6219145f95478e0a98b58d9b9892c9afd087feab72" },
};

static bal_sha256 leaves[MOST];

static void make_leaves(void)
{
    for (size_t i = 0; i < MOST; i++)
        CHECK_OK(bal_merkle_leaf(&leaves[i],
                                 (bal_bytes){ entries[i].data, entries[i].len },
                                 &check_err));
}

static bal_merkle_head head_of(size_t size)
{
    bal_merkle_head head = { .size = size };

    CHECK_OK(bal_merkle_root(&head.root, leaves, size, &check_err));
    return head;
}

static void check_hash(const bal_sha256 *hash, const char *want)
{
    char hex[65];

    bal_sha256_hex(hex, hash);
    CHECK(!strcmp(hex, want));
}

static void add_path(bal_buf *to, const bal_merkle_path *path)
{
    for (size_t i = 0; i < path->count; i++)
        CHECK_OK(bal_buf_append(to, path->hashes[i].bytes, 32, &check_err));
    CHECK_OK(bal_buf_text(to, "|", &check_err));
}

static void check_digest(const bal_buf *text, const char *want)
{
    bal_bytes part = { text->data, text->len };
    bal_sha256 hash;

    CHECK_OK(bal_sha256_of(&hash, &part, 1, &check_err));
    check_hash(&hash, want);
}

static void roots_are_those_of_certificate_transparency(void)
{
    make_leaves();
    for (size_t n = 0; n <= MOST; n++) {
        bal_merkle_head head = head_of(n);
        check_row(trees[n].root);
        check_hash(&head.root, trees[n].root);
    }
}

static void a_growing_tree_has_the_root_of_each_size(void)
{
    bal_merkle_tree tree = { .size = 0 };
    bal_sha256 root;

    make_leaves();
    for (size_t n = 0; n <= MOST; n++) {
        check_row(trees[n].root);
        CHECK(tree.size == n);
        CHECK_OK(bal_merkle_tree_root(&root, &tree, &check_err));
        check_hash(&root, trees[n].root);
        if (n < MOST)
            CHECK_OK(bal_merkle_add(&tree, &leaves[n], &check_err));
    }
}

static void the_root_of_many_leaves_is_right(void)
{
    static bal_sha256 many[MANY];
    bal_sha256 root;

    for (size_t i = 0; i < MANY; i++) {
        uint8_t data[2] = { (uint8_t)i, (uint8_t)(i >> 8) };
        CHECK_OK(bal_merkle_leaf(&many[i], (bal_bytes){ data, 2 }, &check_err));
    }
    CHECK_OK(bal_merkle_root(&root, many, MANY, &check_err));
    check_hash(&root, "457ae06fcc47779e58e3c15b7e8b49c0"
                      "26d5f362b1db62d97c46e604602fc254");
}

static void audit_paths_are_those_of_the_rfc(void)
{
    make_leaves();
    for (size_t n = 1; n <= MOST; n++) {
        BAL_LOCAL(bal_buf) all = { 0 };
        bal_merkle_path path;
        check_row(trees[n].root);
        for (size_t i = 0; i < n; i++) {
            CHECK_OK(bal_merkle_inclusion(&path, leaves, n, i, &check_err));
            add_path(&all, &path);
        }
        check_digest(&all, trees[n].inclusion);
    }
}

static void consistency_proofs_are_those_of_the_rfc(void)
{
    make_leaves();
    for (size_t n = 1; n <= MOST; n++) {
        BAL_LOCAL(bal_buf) all = { 0 };
        bal_merkle_path path;
        check_row(trees[n].root);
        for (size_t m = 1; m <= n; m++) {
            CHECK_OK(bal_merkle_consistency(&path, leaves, n, m, &check_err));
            add_path(&all, &path);
        }
        check_digest(&all, trees[n].consistency);
    }
}

static void proofs_of_what_is_not_there_are_refused(void)
{
    bal_merkle_path path;

    make_leaves();
    CHECK_RC(BAL_EINVAL, bal_merkle_inclusion(&path, leaves, 3, 3, &check_err));
    CHECK_RC(BAL_EINVAL, bal_merkle_inclusion(&path, leaves, 0, 0, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_merkle_consistency(&path, leaves, 3, 0, &check_err));
    CHECK_RC(BAL_EINVAL,
             bal_merkle_consistency(&path, leaves, 3, 4, &check_err));
}

/* ---- checking --------------------------------------------------------------
 */

static bool included(const bal_merkle_path *path, const bal_sha256 *leaf,
                     uint64_t index, const bal_merkle_head *head)
{
    bool good = false;

    CHECK_OK(
        bal_merkle_check_inclusion(path, leaf, index, head, &good, &check_err));
    return good;
}

static bool consistent(const bal_merkle_path *path, const bal_merkle_head *from,
                       const bal_merkle_head *to)
{
    bool good = false;

    CHECK_OK(bal_merkle_check_consistency(path, from, to, &good, &check_err));
    return good;
}

/* Nothing that differs from a good path in one place is good. */
static void check_bent_inclusion(bal_merkle_path *path, uint64_t index,
                                 bal_merkle_head head)
{
    bal_sha256 other = leaves[index];

    for (size_t i = 0; i < path->count; i++) {
        path->hashes[i].bytes[i] ^= 0x40;
        CHECK(!included(path, &leaves[index], index, &head));
        path->hashes[i].bytes[i] ^= 0x40;
    }
    path->hashes[path->count] = other;
    path->count++;
    CHECK(!included(path, &leaves[index], index, &head));
    path->count -= 2;
    CHECK(path->count > MOST || !included(path, &leaves[index], index, &head));
    path->count++;
    other.bytes[0] ^= 1;
    CHECK(!included(path, &other, index, &head));
    CHECK(!included(path, &leaves[index], head.size, &head));
    CHECK(!included(path, &leaves[index], UINT64_MAX, &head));
    for (uint64_t i = 0; i < head.size; i++)
        CHECK(i == index || !included(path, &leaves[index], i, &head));
    head.root.bytes[31] ^= 1;
    CHECK(!included(path, &leaves[index], index, &head));
}

static void every_audit_path_holds_and_no_bent_one(void)
{
    make_leaves();
    for (size_t n = 1; n <= MOST; n++) {
        bal_merkle_head head = head_of(n);
        check_row(trees[n].root);
        for (size_t i = 0; i < n; i++) {
            bal_merkle_path path;
            CHECK_OK(bal_merkle_inclusion(&path, leaves, n, i, &check_err));
            CHECK(included(&path, &leaves[i], i, &head));
            check_bent_inclusion(&path, i, head);
        }
    }
}

static void check_bent_consistency(bal_merkle_path *path, bal_merkle_head from,
                                   bal_merkle_head to)
{
    for (size_t i = 0; i < path->count; i++) {
        path->hashes[i].bytes[i] ^= 0x40;
        CHECK(!consistent(path, &from, &to));
        path->hashes[i].bytes[i] ^= 0x40;
    }
    path->hashes[path->count] = to.root;
    path->count++;
    CHECK(!consistent(path, &from, &to));
    path->count -= 2;
    CHECK(path->count > MOST || !consistent(path, &from, &to));
    path->count++;
    from.root.bytes[0] ^= 1;
    CHECK(!consistent(path, &from, &to));
    from.root.bytes[0] ^= 1;
    to.root.bytes[0] ^= 1;
    CHECK(!consistent(path, &from, &to));
    to.root.bytes[0] ^= 1;
    CHECK(from.size == to.size || !consistent(path, &to, &from));
    from.size = to.size + 1;
    CHECK(!consistent(path, &from, &to));
}

static void every_consistency_proof_holds_and_no_bent_one(void)
{
    make_leaves();
    for (size_t n = 1; n <= MOST; n++) {
        bal_merkle_head to = head_of(n);
        check_row(trees[n].root);
        for (size_t m = 1; m <= n; m++) {
            bal_merkle_head from = head_of(m);
            bal_merkle_path path;
            CHECK_OK(bal_merkle_consistency(&path, leaves, n, m, &check_err));
            CHECK(consistent(&path, &from, &to));
            check_bent_consistency(&path, from, to);
        }
    }
}

static void every_tree_begins_with_the_empty_one(void)
{
    bal_merkle_path path = { .count = 0 };

    make_leaves();
    bal_merkle_head none = head_of(0);
    bal_merkle_head some = head_of(5);
    CHECK(consistent(&path, &none, &none));
    CHECK(consistent(&path, &none, &some));
    CHECK(!consistent(&path, &some, &none));
    path.hashes[path.count++] = some.root;
    CHECK(!consistent(&path, &none, &some));
    path.count = 0;
    none.root.bytes[0] ^= 1;
    CHECK(!consistent(&path, &none, &some));
    CHECK(!consistent(&path, &none, &none));
}

static void a_path_of_any_length_and_size_ends(void)
{
    static bal_merkle_path path = { .count = BAL_MERKLE_PATH };
    bal_merkle_head small = { .size = UINT64_MAX - 1 };
    bal_merkle_head large = { .size = UINT64_MAX };

    make_leaves();
    CHECK(!included(&path, &leaves[0], UINT64_MAX - 1, &large));
    CHECK(!consistent(&path, &small, &large));
    path.count = SIZE_MAX;
    CHECK(!included(&path, &leaves[0], 0, &large));
    CHECK(!consistent(&path, &small, &large));
}

static const check_test tests[] = {
    { TEST(roots_are_those_of_certificate_transparency) },
    { TEST(a_growing_tree_has_the_root_of_each_size) },
    { TEST(the_root_of_many_leaves_is_right) },
    { TEST(audit_paths_are_those_of_the_rfc) },
    { TEST(consistency_proofs_are_those_of_the_rfc) },
    { TEST(proofs_of_what_is_not_there_are_refused) },
    { TEST(every_audit_path_holds_and_no_bent_one) },
    { TEST(every_consistency_proof_holds_and_no_bent_one) },
    { TEST(every_tree_begins_with_the_empty_one) },
    { TEST(a_path_of_any_length_and_size_ends) },
};

CHECK_MAIN(tests)
