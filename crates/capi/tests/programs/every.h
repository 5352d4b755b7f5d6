/* Tables of functions with every kind of misuse that they can be told of. Included behind
 * `struct arguments`, which has `text`, a text, and `out`, where results go. */
#ifndef EVERY_H
#define EVERY_H

/* What may be wrong of a row, beside its handle. */
enum {
    TEXT = 1,     /* not UTF-8, or null and not empty */
    OUT = 2,      /* null, where a result goes */
    VALUE = 4,    /* no value has this number */
    FRAME = 8,    /* left, or another context's */
    CALLBACK = 16, /* null, where one is needed; `destroy` is called in any case */
    GIVEN = 32,   /* null may be given back */
    SILENT = 64,  /* it returns no result */
    LENT = 128,   /* the handle is one while a callback runs, and is never freed */
    LASTING = 256, /* the handle is never freed */
    WAITS = 1024  /* within a callback of streams it would wait for them */
};

static int destroyed;

static void destroy(void *user) {
    (void)user;
    destroyed++;
}

struct row {
    const char *name;
    milieu_result (*call)(struct arguments *a);
    /* Where its handle is among the arguments; NONE if it has none. */
    size_t handle;
    unsigned kinds;
};

#define NONE ((size_t)-1)
#define OF(member) offsetof(struct arguments, member)
/* A function of its own for each call. */
#define CALL(function, ...)                                                                   \
    static milieu_result call_##function(struct arguments *a) {                               \
        (void)a;                                                                              \
        return function(__VA_ARGS__);                                                         \
    }
#define QUIET(function, ...)                                                                  \
    static milieu_result call_##function(struct arguments *a) {                               \
        (void)a;                                                                              \
        (void)function(__VA_ARGS__);                                                          \
        return MILIEU_OK;                                                                     \
    }

#define DEFINE_R(function, handle, kinds, ...) CALL(function, __VA_ARGS__)
#define DEFINE_S(function, handle, kinds, ...) QUIET(function, __VA_ARGS__)
#define ROW_R(function, handle, kinds, ...) {#function, call_##function, handle, kinds},
#define ROW_S(function, handle, kinds, ...) {#function, call_##function, handle, (kinds) | SILENT},
/* The rows of a table. */
#define DEFINE(functions)                                                                     \
    functions(DEFINE_R, DEFINE_S)                                                             \
    static const struct row rows[] = {functions(ROW_R, ROW_S)};                               \
    static const size_t count = sizeof rows / sizeof *rows;

static int made;

/* Runs a row, which has to end so. Whoever was handed a callback lets go of it once. */
static void expect(const struct row *row, struct arguments *a, milieu_result expected, const char *what) {
    destroyed = 0;
    milieu_result result = row->call(a);
    if (row->kinds & SILENT) expected = MILIEU_OK;
    if (result != expected || (result != MILIEU_OK && milieu_message()[0] == 0)
        || destroyed != ((row->kinds & CALLBACK) != 0)) {
        fprintf(stderr, "%s, %s: %s and not %s, destroyed %d times: %s\n", row->name, what,
            milieu_result_name(result), milieu_result_name(expected), destroyed, milieu_message());
        exit(1);
    }
    made++;
}

/* All that may be wrong with a text, and with the place for a result. */
static void misuse_texts(const struct row *row, const struct arguments *good) {
    struct arguments a = *good;
    if (row->kinds & TEXT) {
        a.text = milieu_text_of("\xc3(");
        expect(row, &a, MILIEU_NOT_UTF8, "not UTF-8");
        a.text.bytes = NULL;
        a.text.length = 3;
        expect(row, &a, MILIEU_NULL, "a text that is null");
        a = *good;
    }
    if (row->kinds & OUT) {
        a.out = NULL;
        expect(row, &a, MILIEU_NULL, "no place for the result");
    }
}

/*
 * All that is wrong with a handle; `freed` has one of each kind that was freed, and `other` is of
 * another type.
 */
static void mishandle(const struct row *row, const struct arguments *good,
    const struct arguments *freed, void *other) {
    static uint64_t words[64];
    struct arguments a = *good;
    void **handle = (void **)((char *)&a + row->handle);
    *handle = NULL;
    expect(row, &a, row->kinds & GIVEN ? MILIEU_OK : MILIEU_NULL, "null");
    *handle = words;
    expect(row, &a, MILIEU_WRONG_HANDLE, "no handle");
    *handle = (char *)words + 1;
    expect(row, &a, MILIEU_WRONG_HANDLE, "no address of a handle");
    *handle = other;
    expect(row, &a, MILIEU_WRONG_HANDLE, "a handle of another type");
    if (row->kinds & (LENT | LASTING)) return;
    *handle = *(void *const *)((const char *)freed + row->handle);
    expect(row, &a, MILIEU_FREED, "freed");
}

#endif
