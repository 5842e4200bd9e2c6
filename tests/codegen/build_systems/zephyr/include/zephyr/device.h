#include <stdbool.h>

struct device {
    int is_ready;
};

#define DT_NODELABEL(label) stub_##label
#define DEVICE_DT_GET(node) (&node)
extern const struct device stub_dmic_dev;

bool device_is_ready(const struct device *dev);
