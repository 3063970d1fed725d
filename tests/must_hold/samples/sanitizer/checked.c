#include <stdio.h>
#include <stdlib.h>

/* With a word it writes behind what it was given, which the sanitizer must see; without, it ends well. */
int main(int count, char **words) {
    char *bytes = malloc(64);
    (void)words;
    bytes[count > 1 ? 64 : 63] = 1;
    printf("%d\n", bytes[63]);
    free(bytes);
    return 0;
}
