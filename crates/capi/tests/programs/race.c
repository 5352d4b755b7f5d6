/* Races on purpose: what the sanitizer for threads has to find, so that its silence elsewhere
 * means something.
 *
 *   field     a thread reads a field while another assigns it in the same context
 *   text      a thread reads the bytes of a text that was replaced, and freed, meanwhile
 *   none      the same as `field`, where the other thread has ended before
 */
#include "check.h"
#include "station.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static milieu_context *cx;
static const struct station *env;
static milieu_text language;
/* Relaxed, so that it orders the threads in time and tells the sanitizer nothing. */
static atomic_int step;

enum { READ = 1, ASSIGNED = 2 };

static void reach(int number) { atomic_store_explicit(&step, number, memory_order_relaxed); }

static void await(int number) {
    while (atomic_load_explicit(&step, memory_order_relaxed) < number) {
        sched_yield();
    }
}

static void *read_field(void *unused) {
    (void)unused;
    volatile int read = (int)env->value;
    (void)read;
    reach(READ);
    await(ASSIGNED);
    return NULL;
}

static void *read_text(void *unused) {
    (void)unused;
    volatile char read = language.bytes[0];
    (void)read;
    reach(READ);
    await(ASSIGNED);
    return NULL;
}

int main(int argc, char **argv) {
    milieu_coordinator *coordinator;
    pthread_t thread;
    const char *what = argc > 1 ? argv[1] : "none";
    OK(milieu_coordinator_new(&coordinator));
    OK(station_new(coordinator, NULL, &cx, &env));
    OK(station_set_station_language(cx, milieu_text_of("a language of some length")));
    language = env->station.language;

    CHECK(pthread_create(&thread, NULL, strcmp(what, "text") ? read_field : read_text, NULL) == 0);
    /* It has read before, but nothing says that it had to. */
    await(READ);
    if (strcmp(what, "none") == 0) {
        reach(ASSIGNED);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    OK(station_set_value(cx, 8));
    OK(station_set_station_language(cx, milieu_text_of("another one of some length")));
    reach(ASSIGNED);
    if (strcmp(what, "none") != 0) CHECK(pthread_join(thread, NULL) == 0);
    OK(milieu_context_free(cx));
    milieu_coordinator_free(coordinator);
    return 0;
}
