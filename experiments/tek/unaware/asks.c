/* A program that says what its threads are for, by `milieu/threads.h`, as programs in C do.
 *
 *   asks N CALLS   N threads, which are asked about and told one after the other
 *
 * It prints what a call takes of a thread and of the one that calls, and what the C library's
 * own questions take, in pairs `name number`. Without numbers it prints nothing. */
#define _GNU_SOURCE
#define MILIEU_THREADS_SILENT
#include <milieu/threads.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t all_there;
static pthread_barrier_t is_over;

static void *stay(void *nothing)
{
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&is_over);
    return nothing;
}

static double processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ask(pthread_t thread, pthread_attributes_t *attributes)
{
    return pthread_get_attributes(thread, attributes);
}

static int tell(pthread_t thread, pthread_attributes_t *attributes)
{
    return pthread_set_attributes(thread, attributes);
}

/* What the C library knows of a thread, of which it makes a copy as well. */
static int ask_policy(pthread_t thread, pthread_attributes_t *attributes)
{
    struct sched_param param;
    return pthread_getschedparam(thread, &attributes->priority, &param);
}

static int ask_nothing(pthread_t thread, pthread_attributes_t *attributes)
{
    __asm__ volatile("" : : "r"(thread), "r"(attributes) : "memory");
    return 0;
}

/* What a call takes, in nanoseconds, of each of these in turns. */
static double each(int (*call)(pthread_t, pthread_attributes_t *), const pthread_t *threads,
    long count, long calls, const pthread_attributes_t *given)
{
    pthread_attributes_t attributes = *given;
    int failed = 0;
    double begun = processor_ns();
    for (long i = 0, at = 0; i < calls; i++, at = at + 1 == count ? 0 : at + 1)
        failed |= call(threads[at], &attributes);
    double took = processor_ns() - begun;
    if (failed) {
        fprintf(stderr, "asks: a call has failed: %d\n", failed);
        exit(1);
    }
    return took / (double)calls;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 0;
    long count = atol(argv[1]), calls = atol(argv[2]);
    pthread_t *threads = calloc((size_t)count, sizeof *threads), own = pthread_self();
    if (!threads)
        return 1;
    pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
    pthread_barrier_init(&is_over, NULL, (unsigned)count + 1);
    pthread_attributes_t sensor = PTHREAD_ATTRIBUTES_INIT;
    pthread_attributes_set_role(&sensor, "gas-detection");
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, stay, NULL) != 0)
            return 1;
    pthread_barrier_wait(&all_there);
    /* Afterwards they are told what they are told already. */
    each(tell, threads, count, count, &sensor);
    each(tell, &own, 1, 1, &sensor);
    each(ask_nothing, threads, count, calls, &sensor);
    double loop = each(ask_nothing, threads, count, calls, &sensor);
    printf("served %d threads %ld get_ns %f set_ns %f get_own_ns %f set_own_ns %f policy_ns %f\n",
        milieu_threads_are_served(), count, each(ask, threads, count, calls, &sensor) - loop,
        each(tell, threads, count, calls, &sensor) - loop,
        each(ask, &own, 1, calls, &sensor) - loop, each(tell, &own, 1, calls, &sensor) - loop,
        each(ask_policy, threads, count, calls, &sensor) - loop);
    fflush(stdout);
    pthread_barrier_wait(&is_over);
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return 0;
}
