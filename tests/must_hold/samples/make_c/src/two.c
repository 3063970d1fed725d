#include "sum.h"

int two(void) { return add(one(), one()); }
