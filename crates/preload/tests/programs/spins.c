/*
 * A critical thread for each processor, which never gives it away, and one that is not
 * critical: says how many milliseconds of processor time that one and all of them had in the
 * second second, and from then on until that is much, on however busy a machine.
 */
#include <milieu/threads.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static atomic_int spinning;

static void *spins(void *argument)
{
    (void)argument;
    atomic_fetch_add(&spinning, 1);
    for (;;) {
    }
    return NULL;
}

static long milliseconds_of(clockid_t clock)
{
    struct timespec time;
    CHECK(clock_gettime(clock, &time) == 0);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void sleeps(long milliseconds)
{
    struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    while (nanosleep(&time, &time) != 0) {
    }
}

int main(void)
{
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    pthread_attr_t attr;
    pthread_t other, thread;
    CHECK(pthread_create(&other, NULL, spins, NULL) == 0);
    CHECK(pthread_attributes_set_role(&attributes, "probe") == 0);
    attributes.is_time_critical = 1;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    for (int i = 0; i < processors; ++i)
        CHECK(pthread_create(&thread, &attr, spins, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    sleeps(1000);
    CHECK(atomic_load(&spinning) == processors + 1);
    clockid_t clock;
    CHECK(pthread_getcpuclockid(other, &clock) == 0);
    long before = milliseconds_of(clock), before_all = milliseconds_of(CLOCK_PROCESS_CPUTIME_ID);
    sleeps(1000);
    long second = milliseconds_of(clock) - before;
    long second_all = milliseconds_of(CLOCK_PROCESS_CPUTIME_ID) - before_all;
    while (milliseconds_of(CLOCK_PROCESS_CPUTIME_ID) - before_all < 1000)
        sleeps(100);
    printf("%ld %ld %ld %ld\n", second, second_all, milliseconds_of(clock) - before,
        milliseconds_of(CLOCK_PROCESS_CPUTIME_ID) - before_all);
    fflush(stdout);
    _exit(0);
}
