#include <string>

namespace market {

template <typename T>
class Shop : public Store, private Priced {
public:
    explicit Shop(std::string name);
    ~Shop();
    int total() const { return till; }
    static Shop open(const std::string &name, int day = 1);

private:
    int till;
};

struct Point {
    double x, y;
};

using Money = long;

int Shop::count(int limit)
{
    for (auto &one : items)
        if (one)
            return 1;
    return 0;
}

}  // namespace market

// Adds two numbers.
template <typename T>
T add(T a, T b)
{
    return a + b;
}
