/* Hashes of passwords. */
#define UNIT_STARTS_NO_THREAD

#include "server/users/user_hash.h"

#include <stdio.h>

#include "tests/unit/server/users/made_hash.h"
#include "tests/unit/unit.h"

/* As many as a hash by SHA-512 has. */
#define CHARACTERS_43 "aDL1lNxx4FdvtweQB4VTw3eqqBQP5aaMdRT16gnxuJQ"
#define CHARACTERS_86 CHARACTERS_43 CHARACTERS_43

static const struct {
    const char *method;
    unsigned long cost;
} methods[] = {{"$2a$", 4}, {"$2b$", 4},   {"$2y$", 4},   {"$y$", 1}, {"$gy$", 1},
               {"$7$", 6},  {"$6$", 1000}, {"$5$", 1000}, {"$1$", 0}};

START_TEST(each_method_knows_its_password)
{
    struct user_hasher *hasher = user_hasher_create();
    char hash[CRYPT_OUTPUT_SIZE];

    make_hash(hash, methods[_i].method, methods[_i].cost, "correct horse \xc3\xbc");
    ck_assert_msg(!user_hash_find_fault(hash), "%s: %s", hash, user_hash_find_fault(hash));
    ck_assert(user_hasher_check(hasher, hash, "correct horse \xc3\xbc"));
    ck_assert(!user_hasher_check(hasher, hash, "correct horse"));
    ck_assert(!user_hasher_check(hasher, hash, ""));
    user_hasher_free(hasher);
}
END_TEST

START_TEST(a_cut_hash_is_refused)
{
    char hash[CRYPT_OUTPUT_SIZE], more[CRYPT_OUTPUT_SIZE + 2];

    make_hash(hash, methods[_i].method, methods[_i].cost, "password");
    snprintf(more, sizeof(more), "%s.", hash);
    ck_assert_ptr_nonnull(user_hash_find_fault(more));
    snprintf(more, sizeof(more), "%s:", hash);
    ck_assert_ptr_nonnull(user_hash_find_fault(more));
    for (size_t len = strlen(hash); len-- > 0;) {
        hash[len] = '\0';
        ck_assert_ptr_nonnull(user_hash_find_fault(hash));
    }
}
END_TEST

START_TEST(others_are_refused)
{
    static const char *const others[] = {
        "",
        "*",
        "!",
        "x",
        "secret",
        "abJnggxhB/yWI",
        "_J9..I9.Jbv/H11xG4Hs",
        "$apr1$4u8tHYLv$x2ZgfCDM.aNPKcs5oDCsj0",
        "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
        "$3$$a9f0dd57e1edab5bb55a9ac0a99c15ec",
        "$2x$05$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7y",
        "$2b$31$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7y",
        "$y$jGT$k2XAnEHBqQ1Ct2aMXFKNa/$UEKKbjDtT4JgWWfYjJRXaFvVqrUBKhLNCr7QBGd1qz7",
        "$y$kDT$k2XAnEHBqQ1Ct2aMXFKNa/$UEKKbjDtT4JgWWfYjJRXaFvVqrUBKhLNCr7QBGd1qz7",
        "$7$GU..../....k2XAnEHBqQ1Ct2aMXFKNa/$UEKKbjDtT4JgWWfYjJRXaFvVqrUBKhLNCr7QBGd1qz7",
        "$7$CV..../....k2XAnEHBqQ1Ct2aMXFKNa/$UEKKbjDtT4JgWWfYjJRXaFvVqrUBKhLNCr7QBGd1qz7",
        "$2b$zz$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7y",
        "$6$rounds=999999999$MP0YB7WcaAfU3DVG$" CHARACTERS_86};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ck_assert_msg(user_hash_find_fault(others[i]), "%s", others[i]);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("user hashes");
    TCase *tcase = tcase_create("hashes");
    const int count = sizeof(methods) / sizeof(methods[0]);

    tcase_add_loop_test(tcase, each_method_knows_its_password, 0, count);
    tcase_add_loop_test(tcase, a_cut_hash_is_refused, 0, count);
    tcase_add_test(tcase, others_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
