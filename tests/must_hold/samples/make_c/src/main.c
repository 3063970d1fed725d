#include <stdio.h>
#include <stdlib.h>

#include "sum.h"

int main(int count, char **words) {
    if (count != 3 || two() != 2) return 2;
    printf("%d\n", add(atoi(words[1]), atoi(words[2])));
    return 0;
}
