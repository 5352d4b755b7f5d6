/* Three threads that have ended, and three that never do unless their bytes are 0, of as
   many bytes of stack as the arguments say; then an end of the given kind. `wait` is for
   whoever kills it, `again` is another program by `exec`, `child` has a child that does the
   same, and `user` gives up its rights first of all. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t there;

__attribute__((noinline)) static void use(size_t bytes)
{
    volatile char used[bytes];
    used[bytes - 1] = 1;
    for (size_t i = 0; i < bytes; i += 512)
        used[i] = used[bytes - 1];
}

static void *ends(void *bytes)
{
    use(*(size_t *)bytes);
    return NULL;
}

static void *stays(void *bytes)
{
    use(*(size_t *)bytes);
    pthread_barrier_wait(&there);
    for (;;)
        pause();
    return NULL;
}

static int begin(size_t *shallow, size_t *deep)
{
    pthread_t thread;
    for (int i = 0; i < 3; ++i)
        if (pthread_create(&thread, NULL, ends, shallow) != 0 || pthread_join(thread, NULL) != 0)
            return 0;
    if (*deep == 0)
        return 1;
    pthread_barrier_init(&there, NULL, 4);
    for (int i = 0; i < 3; ++i)
        if (pthread_create(&thread, NULL, stays, deep) != 0)
            return 0;
    pthread_barrier_wait(&there);
    return 1;
}

int main(int count, char **arguments)
{
    static size_t shallow, deep;
    const char *end = count > 3 ? arguments[1] : "";
    if (count < 4)
        return 2;
    shallow = (size_t)atoi(arguments[2]);
    deep = (size_t)atoi(arguments[3]);
    if (strcmp(end, "user") == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 2;
    if (!begin(&shallow, &deep))
        return 1;
    if (strcmp(end, "child") == 0) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            _exit(begin(&shallow, &deep) ? 0 : 1);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
        _exit(0);
    }
    puts("ready");
    fflush(stdout);
    if (strcmp(end, "_exit") == 0)
        _exit(0);
    if (strcmp(end, "_Exit") == 0)
        _Exit(0);
    if (strcmp(end, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(end, "abort") == 0)
        abort();
    if (strcmp(end, "again") == 0)
        execl(arguments[0], arguments[0], "_exit", arguments[2], "0", (char *)NULL);
    if (strcmp(end, "wait") == 0)
        for (;;)
            pause();
    return strcmp(end, "return") != 0 && strcmp(end, "user") != 0;
}
