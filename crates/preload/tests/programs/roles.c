/* Threads of a program that knows nothing of roles; ends when its input does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t begun;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;

/* Known to the loader, as functions of libraries are. */
__attribute__((visibility("default"))) void *worker_of_library(void *argument)
{
    if (argument)
        pthread_setname_np(pthread_self(), argument);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&never);
    return NULL;
}

static void *hidden(void *argument)
{
    return worker_of_library(argument);
}

int main(void)
{
    static const struct {
        void *(*start)(void *);
        const char *name;
    } all[] = {
        { worker_of_library, NULL },
        { hidden, "audio-1" },
        { hidden, "other" },
        { hidden, NULL },
    };
    char byte;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_mutex_lock(&never);
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, all[i].start, (void *)all[i].name) != 0)
            return 1;
        pthread_barrier_wait(&begun);
    }
    puts("begun");
    fflush(stdout);
    return read(0, &byte, 1) < 0;
}
