/*
 * A process that gives up its rights while threads are elsewhere: they return before, and are
 * mediated again when it has them back. With an argument it stays who it is and gives up the
 * one right to move threads.
 */
#include <milieu/threads.h>

#include <errno.h>
#include <linux/capability.h>
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

int capset(cap_user_header_t head, const cap_user_data_t rights);

/* Whoever was lazy returns, whether it had to before or can still. */
static void gives_up_one_right(pthread_t critical, int own)
{
    pthread_attributes_t none = PTHREAD_ATTRIBUTES_INIT;
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct rights[2];
    CHECK(syscall(SYS_capget, &head, rights) == 0);
    rights[0].effective &= ~(1u << CAP_SYS_NICE);
    rights[0].permitted &= ~(1u << CAP_SYS_NICE);
    CHECK(capset(&head, rights) == 0);
    CHECK(pthread_set_attributes(critical, &none) == 0);
    CHECK(policy_of(ordinary) == SCHED_OTHER);
    CHECK(getpriority(PRIO_PROCESS, (id_t)ordinary) == own);
}

int main(int count, char **arguments)
{
    (void)arguments;
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
    if (count > 1) {
        gives_up_one_right(critical, own);
        pthread_barrier_wait(&over);
        CHECK(pthread_join(lazy, NULL) == 0 && pthread_join(critical, NULL) == 0);
        return 0;
    }
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
