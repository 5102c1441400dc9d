// A device behind a pipe: memory and launches, on request. Each request is a letter and 64-bit numbers.
#include <map>
#include <string>

namespace host {

// The arguments of a launch, in order.
struct Arguments {
    std::vector<uint64_t> words;
    template <class T> T* address(unsigned i) const { return (T*)words[i]; }
    int integer(unsigned i) const { return (int)words[i]; }
    unsigned natural(unsigned i) const { return (unsigned)words[i]; }
};

using Kernel = std::function<void(const Arguments&)>;
static std::map<std::string, Kernel>& kernels()
{
    static std::map<std::string, Kernel> table;
    return table;
}

static void read_exactly(void* to, size_t bytes)
{
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) {
        exit(0);
    }
}

static uint64_t number()
{
    uint64_t value;
    read_exactly(&value, sizeof value);
    return value;
}

static std::string text()
{
    std::string value(number(), ' ');
    read_exactly(&value[0], value.size());
    return value;
}

static void request_launch()
{
    const std::string name = text();
    const unsigned grid = number(), threads = number(), shared = number();
    const bool together = number();
    Arguments arguments;
    arguments.words.resize(number());
    for (uint64_t& word : arguments.words) {
        word = number();
    }
    const Kernel& kernel = kernels().at(name);
    launch(grid, threads, shared, together, [&] { kernel(arguments); });
}

static void serve()
{
    for (;;) {
        char what;
        read_exactly(&what, 1);
        if (what == 'A') {
            // Fresh memory is all ones: not a number, and no index.
            const size_t bytes = number();
            void* memory = malloc(bytes);
            memset(memory, 0xff, bytes);
            const uint64_t address = (uint64_t)memory;
            fwrite(&address, sizeof address, 1, stdout);
            fflush(stdout);
        } else if (what == 'F') {
            free((void*)number());
        } else if (what == 'U') {
            char* to = (char*)number();
            const size_t bytes = number();
            read_exactly(to, bytes);
        } else if (what == 'D') {
            const char* from = (const char*)number();
            fwrite(from, 1, number(), stdout);
            fflush(stdout);
        } else if (what == 'C') {
            const char* from = (const char*)number();
            char* to = (char*)number();
            memcpy(to, from, number());
        } else if (what == 'S') {
            char* to = (char*)number();
            const uint64_t pattern = number();
            const size_t size = number(), count = number();
            for (size_t i = 0; i < count; ++i) {
                memcpy(to + i * size, &pattern, size);
            }
        } else if (what == 'L') {
            request_launch();
        }
    }
}

} // namespace host
