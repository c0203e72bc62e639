/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's kselftest harness as cppcheck is to see it: the real macros take it half
 * a minute and confuse it. Only static checks include this.
 */
#define ASSERT_IF(wrong)	do { if (wrong) return; } while (0)
#define EXPECT_IF(wrong)	do { if (wrong) puts("wrong"); } while (0)

#define ASSERT_EQ(a, b)		ASSERT_IF((a) != (b))
#define ASSERT_NE(a, b)		ASSERT_IF((a) == (b))
#define ASSERT_LT(a, b)		ASSERT_IF((a) >= (b))
#define ASSERT_LE(a, b)		ASSERT_IF((a) > (b))
#define ASSERT_GT(a, b)		ASSERT_IF((a) <= (b))
#define ASSERT_GE(a, b)		ASSERT_IF((a) < (b))
#define ASSERT_TRUE(a)		ASSERT_IF(!(a))
#define ASSERT_FALSE(a)		ASSERT_IF(a)
#define ASSERT_STREQ(a, b)	ASSERT_IF(strcmp(a, b))
#define EXPECT_EQ(a, b)		EXPECT_IF((a) != (b))
#define EXPECT_NE(a, b)		EXPECT_IF((a) == (b))
#define EXPECT_LT(a, b)		EXPECT_IF((a) >= (b))
#define EXPECT_LE(a, b)		EXPECT_IF((a) > (b))
#define EXPECT_GT(a, b)		EXPECT_IF((a) <= (b))
#define EXPECT_GE(a, b)		EXPECT_IF((a) < (b))
#define EXPECT_TRUE(a)		EXPECT_IF(!(a))
#define EXPECT_FALSE(a)		EXPECT_IF(a)
#define EXPECT_STREQ(a, b)	EXPECT_IF(strcmp(a, b))
#define TH_LOG(...)
#define SKIP(then, ...)		then

#define FIXTURE_DATA(f)		struct f##_data
#define FIXTURE(f)		struct f##_data
#define FIXTURE_VARIANT(f)	struct f##_variant
#define FIXTURE_VARIANT_ADD(f, v) static const struct f##_variant f##_##v =
#define FIXTURE_SETUP(f)	\
	static void f##_setup(struct f##_data *self, const struct f##_variant *variant)
#define FIXTURE_TEARDOWN(f)	\
	static void f##_teardown(struct f##_data *self, const struct f##_variant *variant)
#define TEST_F(f, t)		\
	static void f##_##t(struct f##_data *self, const struct f##_variant *variant)
#define TEST_F_TIMEOUT(f, t, s)	TEST_F(f, t)
#define TEST(t)			static void test_##t(void)
#define TEST_HARNESS_MAIN
