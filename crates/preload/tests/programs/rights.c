/*
 * A process that gives up its rights while threads are elsewhere: they return before, and are
 * mediated again when it has them back.
 */
#include <milieu/threads.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static pthread_barrier_t begun, over;
static pid_t ordinary;

static void *waits(void *number)
{
    if (number != NULL)
        *(pid_t *)number = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&over);
    return NULL;
}

static int region_of(pthread_t thread)
{
    pthread_information_t information = PTHREAD_INFORMATION_INIT;
    CHECK(pthread_get_information_np(thread, &information) == 0);
    return information.region;
}

/* Asked of the kernel. */
static int policy_of(pid_t number)
{
    return (int)syscall(SYS_sched_getscheduler, number);
}

int main(void)
{
    pthread_attributes_t attributes = PTHREAD_ATTRIBUTES_INIT;
    pthread_t lazy, critical;
    pthread_attr_t attr;
    int own = getpriority(PRIO_PROCESS, 0);
    CHECK(pthread_barrier_init(&begun, NULL, 3) == 0);
    CHECK(pthread_barrier_init(&over, NULL, 3) == 0);
    CHECK(pthread_create(&lazy, NULL, waits, &ordinary) == 0);
    CHECK(pthread_attributes_set_role(&attributes, "probe") == 0);
    attributes.is_time_critical = 1;
    CHECK(pthread_attr_init(&attr) == 0);
    CHECK(pthread_attr_setattributes_np(&attr, &attributes) == 0);
    CHECK(pthread_create(&critical, &attr, waits, NULL) == 0);
    CHECK(pthread_attr_destroy(&attr) == 0);
    pthread_barrier_wait(&begun);
    /* Twice, and at last for good. */
    for (int i = 0; i < 2; ++i) {
        CHECK(region_of(lazy) == PTHREAD_REGION_LAZY);
        CHECK(region_of(critical) == PTHREAD_REGION_FAST);
        CHECK(seteuid(65534) == 0);
        CHECK(region_of(lazy) == PTHREAD_REGION_OWN);
        CHECK(region_of(critical) == PTHREAD_REGION_OWN);
        CHECK(policy_of(ordinary) == SCHED_OTHER);
        CHECK(getpriority(PRIO_PROCESS, 0) == own);
        CHECK(seteuid(0) == 0);
    }
    CHECK(region_of(lazy) == PTHREAD_REGION_LAZY);
    CHECK(setuid(65534) == 0);
    CHECK(setuid(0) == -1 && errno == EPERM);
    CHECK(region_of(lazy) == PTHREAD_REGION_OWN && policy_of(ordinary) == SCHED_OTHER);
    pthread_barrier_wait(&over);
    CHECK(pthread_join(lazy, NULL) == 0 && pthread_join(critical, NULL) == 0);
    return 0;
}
