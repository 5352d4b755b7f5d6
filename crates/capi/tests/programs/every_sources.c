/* Every function of sources.h with every kind of misuse that it can be told of. `list` prints their
 * names, which have to be those of the header. */

#include "check.h"

#include <milieu/sources.h>

/* What functions are handed; one of it is wrong at a time. */
struct arguments {
    milieu_coordinator *coordinator;
    milieu_streams *streams;
    milieu_text text;
    /* Where results go: null, or the address of some memory. */
    void *out;
};

#include "every.h"

static size_t number;

static milieu_attribute told(struct arguments *a) {
    return (milieu_attribute){ milieu_text_of("root"), a->text };
}

#define FUNCTIONS(R, S)                                                                       \
    R(milieu_sources, NONE, OUT, a->out, &number)                                             \
    R(milieu_source_open, OF(streams), TEXT | OUT, a->streams, milieu_text_of("/a"),          \
        milieu_text_of("machine.load"), (milieu_attribute[]){ told(a) }, 1, a->out)

DEFINE(FUNCTIONS)

static void *memory[1];

static void make(struct arguments *a) {
    milieu_streams_options options = MILIEU_STREAMS_OPTIONS;
    options.virtual_time = true;
    OK(milieu_coordinator_new(&a->coordinator));
    OK(milieu_streams_new(a->coordinator, &options, &a->streams));
    a->text = milieu_text_of("/");
    a->out = memory;
}

static void unmake(struct arguments *a) {
    milieu_streams_free(a->streams);
    milieu_coordinator_free(a->coordinator);
}

/* Nobody waits within a callback for what waits for it. */
static milieu_result within(void *user, milieu_feed *feed) {
    expect(&rows[1], user, MILIEU_BUSY, "within a callback");
    return milieu_feed_end(feed);
}

int main(int argc, char **argv) {
    CHECK(argc < 3);
    if (argc == 2) {
        CHECK(strcmp(argv[1], "list") == 0);
        for (size_t i = 0; i < count; i++) puts(rows[i].name);
        return 0;
    }
    struct arguments good, freed;
    make(&freed);
    unmake(&freed);
    make(&good);
    for (size_t i = 0; i < count; i++) {
        misuse_texts(&rows[i], &good);
        if (rows[i].handle != NONE) mishandle(&rows[i], &good, &freed, good.coordinator);
    }
    EXPECT(MILIEU_NULL, milieu_sources((const milieu_source_definition **)memory, NULL));
    milieu_text broken = { NULL, 3 }, name = milieu_text_of("/a");
    milieu_text load = milieu_text_of("machine.load");
    milieu_source *source;
    EXPECT(MILIEU_NULL, milieu_source_open(good.streams, broken, load, NULL, 0, &source));
    EXPECT(MILIEU_NULL, milieu_source_open(good.streams, name, broken, NULL, 0, &source));
    broken = milieu_text_of("\xc3(");
    EXPECT(MILIEU_NOT_UTF8, milieu_source_open(good.streams, broken, load, NULL, 0, &source));
    EXPECT(MILIEU_NOT_UTF8, milieu_source_open(good.streams, name, broken, NULL, 0, &source));

    milieu_source *polled;
    OK(milieu_source_new(
        good.streams, milieu_text_of("/p"), within, &good, destroy, &polled));
    int before = made;
    OK(milieu_streams_pass(good.streams, 1));
    CHECK(made == before + 1);
    milieu_source_free(polled);
    CHECK(destroyed == 1);
    /* Nothing of it has changed anything: the name is free. */
    OK(milieu_source_open(good.streams, name, load, NULL, 0, &source));
    milieu_source_free(source);
    unmake(&good);
    printf("%d\n", made);
    return 0;
}
