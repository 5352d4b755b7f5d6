/*
 * A program of this header with an older library, which knows less: what that has works, and
 * the rest says so.
 */
#include <milieu/threads.h>

#include <stdio.h>

#undef pthread_setschedparam

static int sets_role(pthread_t thread, const char *role)
{
    (void)thread;
    return strcmp(role, "main") == 0 ? 0 : EINVAL;
}

/* As it was before there was information. */
static struct {
    unsigned version;
    void *before[4];
    int (*set_role)(pthread_t, const char *);
    void *after[5];
} older = { 2, { NULL }, sets_role, { NULL } };

int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
    struct milieu_threads_request *request = (struct milieu_threads_request *)param;
    (void)thread;
    if (policy != MILIEU_THREADS_POLICY || param->sched_priority > (int)older.version)
        return EINVAL;
    request->here = (const struct milieu_threads *)&older;
    return 0;
}

int main(void)
{
    pthread_information_t told = PTHREAD_INFORMATION_INIT;
    if (!milieu_threads_are_served() || pthread_setrole_np(pthread_self(), "main") != 0)
        return 1;
    if (pthread_get_information_np(pthread_self(), &told) != ENOSYS || told.tid != 0)
        return 2;
    puts("done");
    return 0;
}
