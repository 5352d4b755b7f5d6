/*
 * What the header promises, where Milieu is there and where it is not: says what it saw.
 * With an argument, Milieu has to be there.
 */
#include <milieu/threads.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(it) \
    do { \
        if (!(it)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #it); \
            exit(1); \
        } \
    } while (0)

static int here;
static pthread_barrier_t both;

static void *probe(void *argument)
{
    pthread_attributes_t own;
    (void)argument;
    CHECK(pthread_get_attributes(pthread_self(), &own) == 0);
    CHECK(strcmp(own.role, here ? "gas-detection" : "") == 0);
    CHECK(own.is_time_critical == here && own.priority == (here ? -5 : 0));
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return NULL;
}

static void threads_begin_with_attributes(void)
{
    pthread_t thread, found[2];
    size_t count = 7;
    pthread_attr_t attr;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    CHECK(pthread_attributes_set_role(&attributes, "gas-detection") == 0);
    attributes.is_time_critical = 1;
    attributes.priority = -5;
    attributes.stack_bytes = 300000;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    CHECK(pthread_create(&thread, &attr, probe, NULL) == 0);
    pthread_barrier_wait(&both);

    CHECK(pthread_find_role_np("gas-detection", found, 2, &count) == 0);
    CHECK(count == (size_t)here);
    CHECK(!here || pthread_equal(found[0], thread));
    CHECK(pthread_find_role_np("nobody", found, 2, &count) == 0 && count == 0);

    int policy;
    struct sched_param param;
    CHECK(pthread_getschedparam(thread, &policy, &param) == 0);
    CHECK(policy == (here ? SCHED_TEK : SCHED_OTHER));
    CHECK(param.sched_priority == (here ? -5 : 0));
    CHECK(!here || (pthread_attr_getschedpolicy(&attr, &policy) == 0 && policy == SCHED_TEK));

    pthread_barrier_wait(&both);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_find_role_np("gas-detection", NULL, 0, &count) == 0 && count == 0);
    /* Attributes that are initialized anew say nothing. */
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_getattributes_np(&attr, &attributes) == 0 && attributes.role[0] == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

static void threads_become_critical_and_cease(void)
{
    pthread_attributes_t attributes;
    struct sched_param first, normal, bad;
    memset(&normal, 0, sizeof normal);
    first = bad = normal;
    first.sched_priority = -20;
    bad.sched_priority = 20;
    CHECK(pthread_setrole_np(pthread_self(), "main") == 0);
    CHECK(pthread_setschedparam(pthread_self(), SCHED_TEK, &first) == 0);
    CHECK(pthread_get_attributes(pthread_self(), &attributes) == 0);
    if (here) {
        CHECK(strcmp(attributes.role, "main") == 0);
        CHECK(attributes.is_time_critical && attributes.priority == -20);
        CHECK(pthread_setschedparam(pthread_self(), SCHED_TEK, &bad) == EINVAL);
        CHECK(pthread_setrole_np(pthread_self(), "a//b") == EINVAL);
        CHECK(pthread_setrole_np(pthread_self(), "x23456789x23456789x23456789") == EINVAL);
    }
    CHECK(pthread_setschedparam(pthread_self(), SCHED_OTHER, &normal) == 0);
    CHECK(pthread_get_attributes(pthread_self(), &attributes) == 0);
    CHECK(!attributes.is_time_critical);
    int policy;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &normal) == 0);
    CHECK(policy == SCHED_OTHER);
}

static void *is_second(void *argument)
{
    int policy;
    struct sched_param param;
    (void)argument;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
    CHECK(policy == (here ? SCHED_TEK : SCHED_OTHER));
    CHECK(param.sched_priority == (here ? -5 : 0));
    CHECK(pthread_setschedparam(pthread_self(), SCHED_TEK, &param) == 0);
    CHECK(pthread_setschedprio(pthread_self(), -7) == 0);
    CHECK(pthread_setschedprio(pthread_self(), 20) == EINVAL);
    CHECK(pthread_getschedparam(pthread_self(), &policy, &param) == 0);
    CHECK(param.sched_priority == (here ? -7 : 0));
    return NULL;
}

static void threads_begin_with_the_policy(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    struct sched_param param;
    memset(&param, 0, sizeof param);
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED) == 0);
    CHECK(pthread_attr_setschedpolicy(&attr, SCHED_TEK) == 0);
    param.sched_priority = -5;
    CHECK(pthread_attr_setschedparam(&attr, &param) == 0);
    CHECK(pthread_create(&thread, &attr, is_second, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    param.sched_priority = 20;
    CHECK(pthread_attr_setschedparam(&attr, &param) == EINVAL);
    CHECK(pthread_attr_destroy(&attr) == 0);
}

static pthread_t created;

static void *was_told(void *argument)
{
    pthread_attributes_t own;
    (void)argument;
    /* As ever: who was created stands there before anything else. */
    CHECK(pthread_equal(created, pthread_self()));
    pthread_barrier_wait(&both);
    CHECK(pthread_get_attributes(pthread_self(), &own) == 0);
    CHECK(strcmp(own.role, here ? "told" : "") == 0);
    CHECK(own.is_time_critical == here && own.priority == (here ? -3 : 0));
    return NULL;
}

/* What a thread is for is said, and known, as soon as it is created, as with any policy: most of
 * these have not begun. */
static void threads_are_told_before_they_begin(void)
{
    for (int i = 0; i < 100; ++i) {
        pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT, found;
        struct sched_param param;
        int policy;
        memset(&param, 0, sizeof param);
        CHECK(pthread_create(&created, NULL, was_told, NULL) == 0);
        CHECK(pthread_get_attributes(created, &found) == 0 && found.role[0] == 0);
        CHECK(pthread_attributes_set_role(&attributes, "told") == 0);
        CHECK(pthread_set_attributes(created, &attributes) == 0);
        param.sched_priority = -3;
        CHECK(pthread_setschedparam(created, SCHED_TEK, &param) == 0);
        CHECK(pthread_getschedparam(created, &policy, &param) == 0);
        CHECK(policy == (here ? SCHED_TEK : SCHED_OTHER));
        CHECK(pthread_get_attributes(created, &found) == 0);
        CHECK(strcmp(found.role, here ? "told" : "") == 0);
        pthread_barrier_wait(&both);
        CHECK(pthread_join(created, NULL) == 0);
        CHECK(!here || pthread_set_attributes(created, &attributes) == ESRCH);
        /* No thread is called so, neither one that is about to begin. */
        CHECK(!here || pthread_set_attributes(0, &attributes) == ESRCH);
        CHECK(!here || pthread_get_attributes(0, &found) == ESRCH);
    }
}

__attribute__((noinline)) static int is_deep(void)
{
    volatile char frame[100000];
    for (size_t i = 0; i < sizeof frame; ++i)
        frame[i] = (char)i;
    return frame[7] == 7;
}

static void *goes_deeper(void *argument)
{
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    CHECK(is_deep());
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return argument;
}

static uint64_t boot_time_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void what_is_known_of_threads_is_told(void)
{
    pthread_t thread, found;
    size_t count;
    pthread_attr_t attr;
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    pthread_information_t told = PTHREAD_INFORMATION_INIT;
    uint64_t before = boot_time_ns();
    CHECK(pthread_attributes_set_role(&attributes, "deep/one") == 0);
    attributes.is_time_critical = 1;
    attributes.priority = 7;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setstacksize(&attr, 1 << 20) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    CHECK(pthread_create(&thread, &attr, goes_deeper, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    pthread_barrier_wait(&both);
    if (here) {
        const char *settings = getenv("MILIEU_THREADS");
        int is_measured = !settings || !strstr(settings, "stacks=off");
        CHECK(pthread_find_role_np("deep/one", &found, 1, &count) == 0 && count == 1);
        CHECK(pthread_get_information_np(found, &told) == 0);
        CHECK(told.size == sizeof told && told.tid > 0 && told.tid != getpid());
        CHECK(strcmp(told.role, "deep/one") == 0);
        CHECK(told.is_time_critical && !told.is_lazy && told.priority == 7);
        CHECK(told.region == PTHREAD_REGION_FAST || told.region == PTHREAD_REGION_OWN);
        CHECK(told.policy == SCHED_OTHER);
        /* It is told in whole microseconds. */
        CHECK(told.created_ns >= before - 1000 && told.created_ns <= boot_time_ns());
        if (is_measured)
            CHECK(told.stack_bytes > 1000000 && told.stack_bytes <= 1 << 20);
        else
            CHECK(told.stack_bytes == 0 && told.stack_bytes_peak == 0);
        /* Whoever asks later knows of what was used meanwhile. */
        CHECK(told.stack_bytes_peak < 100000);
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
        CHECK(pthread_get_information_np(thread, &told) == 0);
        CHECK(told.stack_bytes_peak <= told.stack_bytes);
        CHECK(told.stack_bytes_peak >= 100000 || !is_measured);

        /* One that knows of more than there is, and one that has too little room. */
        struct {
            pthread_information_t known;
            char later[16];
        } larger;
        larger.known.size = sizeof larger;
        CHECK(pthread_get_information_np(pthread_self(), &larger.known) == 0);
        CHECK(larger.known.size == sizeof told && larger.known.tid == getpid());
        told.size = sizeof told - 1;
        CHECK(pthread_get_information_np(thread, &told) == EINVAL);
        CHECK(pthread_get_information_np(thread, NULL) == EINVAL);
        told.size = sizeof told;
    } else {
        CHECK(pthread_get_information_np(thread, &told) == ENOSYS);
        CHECK(told.tid == 0);
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
    }
    pthread_barrier_wait(&both);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_get_information_np(thread, &told) == (here ? ESRCH : ENOSYS));
}

int main(int count, char **arguments)
{
    (void)arguments;
    here = milieu_threads_are_served();
    CHECK(here || count == 1);
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    threads_begin_with_attributes();
    threads_become_critical_and_cease();
    threads_begin_with_the_policy();
    threads_are_told_before_they_begin();
    what_is_known_of_threads_is_told();
    puts("done");
    return 0;
}
