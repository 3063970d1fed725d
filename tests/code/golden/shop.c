#include <stdio.h>
#include "stock.h"

#define LIMIT 3
#define SQUARE(x) ((x) * (x))

typedef unsigned int money;

enum day { MONDAY, TUESDAY };

struct shop {
    char *name;
    money till;
};

typedef struct {
    int x, y;
} point;

static int open_shops = 0;

int count(struct shop *shops, int length);

/* Opens a shop. */
struct shop *open_shop(const char *name)
{
    if (!name)
        return NULL;
    while (open_shops)
        open_shops--;
    return NULL;
}

static money total(void) { return 0; }
