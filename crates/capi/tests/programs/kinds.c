/* Every setter with values of every type, those that it cannot mean included: what is not of the
 * type is refused and changes nothing, what is arrives. */

#include "check.h"
#include "kinds.h"

#include <errno.h>
#include <math.h>

enum { MOST = 3 };

/* What a setter is handed, and the texts that it says by that. */
struct input {
    const char *setter;
    milieu_result (*set)(milieu_context *cx, uint32_t value, const struct input *input);
    double number;
    int64_t integer;
    /* Those of an enumeration's variant are its own. */
    size_t count;
    const char *texts[MOST];
};

static milieu_result set_text(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_text(cx, value, milieu_text_of(input->texts[0]));
}
static milieu_result set_bool(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_bool(cx, value, input->integer);
}
static milieu_result set_signed(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_signed(cx, value, input->integer);
}
static milieu_result set_unsigned(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_unsigned(cx, value, (uint64_t)input->integer);
}
static milieu_result set_float(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_float(cx, value, (float)input->number);
}
static milieu_result set_double(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_double(cx, value, input->number);
}
static milieu_result set_variant(milieu_context *cx, uint32_t value, const struct input *input) {
    return milieu_context_set_variant(cx, value, (uint32_t)input->integer);
}
static milieu_result set_elements(milieu_context *cx, uint32_t value, const struct input *input) {
    milieu_text texts[MOST];
    for (size_t i = 0; i < input->count; i++) texts[i] = milieu_text_of(input->texts[i]);
    return milieu_context_set_elements(cx, value, texts, input->count);
}

static const char *const variants[] = {"low", "very high"};
enum { VARIANTS = sizeof variants / sizeof *variants };

#define TEXT(text) {"text", set_text, 0, 0, 1, {text}}
#define BOOL(boolean, text) {"bool", set_bool, 0, boolean, 1, {text}}
#define SIGNED(number, text) {"signed", set_signed, 0, number, 1, {text}}
#define UNSIGNED(number, text) {"unsigned", set_unsigned, 0, (int64_t)(number), 1, {text}}
#define FLOAT(number, text) {"float", set_float, number, 0, 1, {text}}
#define DOUBLE(number, text) {"double", set_double, number, 0, 1, {text}}
#define VARIANT(number) {"variant", set_variant, 0, number, 1, {NULL}}

/* 10 to the power of 300, as no type of whole numbers has it. */
static char huge[302];

static const struct input inputs[] = {
    TEXT(""), TEXT("dog"), TEXT("0"), TEXT("1"), TEXT("-3"), TEXT("40000"), TEXT("3000000000"),
    TEXT("99999999999999999999"), TEXT("0.5"), TEXT("1e400"), TEXT("inf"), TEXT("nan"),
    TEXT("yes"), TEXT("low"), TEXT("very high"), TEXT("Low"), TEXT("0x10"), TEXT("1 "),
    BOOL(true, "true"), BOOL(false, "false"),
    SIGNED(0, "0"), SIGNED(-1, "-1"), SIGNED(32768, "32768"), SIGNED(-2147483649, "-2147483649"),
    SIGNED(INT64_MAX, "9223372036854775807"), SIGNED(INT64_MIN, "-9223372036854775808"),
    UNSIGNED(1, "1"), UNSIGNED(65536, "65536"), UNSIGNED(4294967296, "4294967296"),
    UNSIGNED(UINT64_MAX, "18446744073709551615"),
    FLOAT(0.5, "0.5"), FLOAT(-2, "-2"), FLOAT(INFINITY, "inf"), FLOAT(NAN, "NaN"),
    DOUBLE(0.25, "0.25"), DOUBLE(1, "1"), DOUBLE(1e300, huge), DOUBLE(-INFINITY, "-inf"),
    DOUBLE(NAN, "NaN"),
    VARIANT(0), VARIANT(1), VARIANT(2), VARIANT(UINT32_MAX),
    {"elements", set_elements, 0, 0, 0, {NULL}},
    {"elements", set_elements, 0, 0, 1, {"1"}},
    {"elements", set_elements, 0, 0, 2, {"1", "0"}},
    {"elements", set_elements, 0, 0, 2, {"-5", "0.5"}},
    {"elements", set_elements, 0, 0, 3, {"1", "0", "dog"}},
    {"elements", set_elements, 0, 0, 3, {"low", "very high", "low"}},
    {"elements", set_elements, 0, 0, 2, {"", "true"}},
};
enum { INPUTS = sizeof inputs / sizeof *inputs };

static bool is_among(const char *text, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, texts[i]) == 0) return true;
    return false;
}

static bool is_float(const char *text, bool is_single) {
    char *end;
    double number = is_single ? (double)strtof(text, &end) : strtod(text, &end);
    return *text && !*end && !strchr(text, 'x') && isfinite(number);
}

static bool is_whole(const char *text, int64_t least, uint64_t most) {
    char *end;
    errno = 0;
    if (*text == '-') {
        long long number = strtoll(text, &end, 10);
        return !*end && errno == 0 && number >= least;
    }
    unsigned long long number = strtoull(text, &end, 10);
    return *text && !*end && errno == 0 && number <= most;
}

/* Whether a value of this kind can be what a text says: the header's `is of the key's type`. */
static bool is_of(uint32_t kind, const char *text) {
    static const char *const booleans[] = {"true", "false", "yes", "no", "1", "0"};
    switch (kind) {
    case MILIEU_BOOL: return is_among(text, booleans, 6);
    case MILIEU_I16: return is_whole(text, INT16_MIN, INT16_MAX);
    case MILIEU_I32: return is_whole(text, INT32_MIN, INT32_MAX);
    case MILIEU_I64: return is_whole(text, INT64_MIN, INT64_MAX);
    case MILIEU_U16: return is_whole(text, 0, UINT16_MAX);
    case MILIEU_U32: return is_whole(text, 0, UINT32_MAX);
    case MILIEU_U64: return is_whole(text, 0, UINT64_MAX);
    case MILIEU_F32: return is_float(text, true);
    case MILIEU_F64: return is_float(text, false);
    case MILIEU_TEXT: return true;
    case MILIEU_ENUM: return is_among(text, variants, VARIANTS);
    }
    CHECK(!"a kind");
    return false;
}

static size_t size_of(uint32_t kind) {
    switch (kind) {
    case MILIEU_BOOL: return sizeof(bool);
    case MILIEU_I16:
    case MILIEU_U16: return 2;
    case MILIEU_I32:
    case MILIEU_U32:
    case MILIEU_F32:
    case MILIEU_ENUM: return 4;
    case MILIEU_TEXT: return sizeof(milieu_text);
    }
    return 8;
}

/* Whether memory of that kind has what a text says. */
static bool has(uint32_t kind, const void *place, const char *text) {
    int64_t number = *text == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
    switch (kind) {
    case MILIEU_BOOL: {
        static const char *const is_true[] = {"true", "yes", "1"};
        return *(const bool *)place == is_among(text, is_true, 3);
    }
    case MILIEU_I16: return *(const int16_t *)place == number;
    case MILIEU_I32: return *(const int32_t *)place == number;
    case MILIEU_I64: return *(const int64_t *)place == number;
    case MILIEU_U16: return *(const uint16_t *)place == number;
    case MILIEU_U32: return *(const uint32_t *)place == number;
    case MILIEU_U64: return *(const uint64_t *)place == (uint64_t)number;
    case MILIEU_F32: return *(const float *)place == strtof(text, NULL);
    case MILIEU_F64: return *(const double *)place == strtod(text, NULL);
    case MILIEU_TEXT: return milieu_text_is(*(const milieu_text *)place, text);
    case MILIEU_ENUM: return strcmp(text, variants[*(const uint32_t *)place]) == 0;
    }
    return false;
}

/* An array, as generated code has it. */
struct elements {
    const char *first;
    size_t count;
};

static size_t keys_of(milieu_coordinator *coordinator) {
    milieu_hold *hold;
    const milieu_key *keys;
    size_t count;
    OK(milieu_hold_new(coordinator, &hold));
    OK(milieu_hold_keys(hold, &keys, &count));
    OK(milieu_hold_free(hold));
    return count;
}

/* How it has to end where assignments are made. */
static milieu_result expected(const milieu_value *value, const struct input *input) {
    uint32_t kind = value->kind & ~MILIEU_ARRAY;
    bool is_array = value->kind & MILIEU_ARRAY;
    if (is_array != (input->set == set_elements)) return MILIEU_INVALID;
    if (input->set == set_variant)
        return kind == MILIEU_ENUM && input->integer < VARIANTS ? MILIEU_OK : MILIEU_INVALID;
    for (size_t i = 0; i < input->count; i++)
        if (!is_of(kind, input->texts[i])) return MILIEU_INVALID;
    return MILIEU_OK;
}

/* Whether the field has what was assigned. */
static bool arrived(const milieu_value *value, const struct input *input, const char *field) {
    uint32_t kind = value->kind & ~MILIEU_ARRAY;
    if (input->set == set_variant) return has(kind, field, variants[input->integer]);
    if (!(value->kind & MILIEU_ARRAY)) return has(kind, field, input->texts[0]);
    const struct elements *elements = (const struct elements *)field;
    if (elements->count != input->count) return false;
    for (size_t i = 0; i < input->count; i++)
        if (!has(kind, elements->first + i * size_of(kind), input->texts[i])) return false;
    return true;
}

int main(void) {
    milieu_coordinator *coordinator;
    milieu_context *cx, *reading;
    milieu_context_options options = MILIEU_CONTEXT_OPTIONS;
    const struct kinds *env;
    struct kinds before;
    const milieu_layout *layout = kinds_layout();
    int taken = 0, refused = 0;
    options.policy = MILIEU_WITHOUT_ASSIGNMENT;
    memset(huge, '0', sizeof huge - 1);
    huge[0] = '1';
    OK(milieu_coordinator_new(&coordinator));
    OK(kinds_new(coordinator, NULL, &cx, &env));
    OK(kinds_new(coordinator, &options, &reading, NULL));
    CHECK(layout->count == 22);
    for (uint32_t at = 0; at < layout->count; at++) {
        const milieu_value *value = &layout->values[at];
        for (size_t i = 0; i < INPUTS; i++) {
            const struct input *input = &inputs[i];
            memcpy(&before, env, sizeof before);
            milieu_result wanted = expected(value, input), result = input->set(cx, at, input);
            const char *field = (const char *)env + value->offset;
            bool is_right = result == wanted;
            if (is_right && result == MILIEU_OK) {
                is_right = arrived(value, input, field);
                taken++;
            } else if (is_right) {
                is_right = memcmp(&before, env, sizeof before) == 0
                    && strstr(milieu_message(), value->pattern) && keys_of(coordinator) == 0;
                refused++;
            }
            if (!is_right) {
                fprintf(stderr, "set_%s(%s) of %s: %s and not %s: %s\n", input->setter,
                    input->count && input->texts[0] ? input->texts[0] : "", value->pattern,
                    milieu_result_name(result), milieu_result_name(wanted), milieu_message());
                return 1;
            }
            OK(milieu_context_unset(cx, at));
            CHECK(keys_of(coordinator) == 0);
            /* Whatever it is, a context that assigns nothing assigns it not. */
            if (wanted == MILIEU_OK) EXPECT(MILIEU_READ_ONLY, input->set(reading, at, input));
            CHECK(input->set(reading, at, input) != MILIEU_OK);
        }
        EXPECT(MILIEU_READ_ONLY, milieu_context_unset(reading, at));
    }
    CHECK(taken > 150 && refused > 600);
    OK(milieu_context_free(reading));
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return 0;
}
