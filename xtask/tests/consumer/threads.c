/* What a thread is for is known only where the preload is. */
#include <milieu/threads.h>
#include <stdio.h>

int main(void)
{
    pthread_attributes_t attributes;
    if (pthread_setrole_np(pthread_self(), "probe") != 0
        || pthread_get_attributes(pthread_self(), &attributes) != 0)
        return 1;
    printf("%zu bits: `%s`\n", 8 * sizeof(void *), attributes.role);
    return 0;
}
