int add(int left, int right);
int one(void);
int two(void);
