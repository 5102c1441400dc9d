// The machine behind shim.h: fibers, meetings, memory, and a run that follows a script.

#include "shim.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace shim {

Self self;

void fail(const char* what)
{
    std::fprintf(stderr, "shim: %s\n", what);
    std::exit(3);
}

namespace {

// Memory that ends at a page nobody may touch, and starts behind one.
char* guarded(size_t bytes, int fill)
{
    const size_t page = 4096;
    const size_t pages = (bytes + page - 1) / page;
    char* base = (char*)mmap(nullptr, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || (pages > 0 && mprotect(base + page, pages * page, PROT_READ | PROT_WRITE) != 0)) {
        fail("out of memory");
    }
    if (pages > 0) {
        std::memset(base + page, fill, pages * page);
    }
    return base + page + pages * page - (bytes + 15) / 16 * 16;
}

// A meeting of fibers, again and again.
struct Meeting {
    unsigned arrived = 0;
    unsigned long round = 0;
    float values[2][32];
};

struct Block;

struct Fiber {
    ucontext_t context;
    Self self;
    Block* block = nullptr;
    std::vector<char> stack;
    bool done = false;
    // Where it waits, and until which round is over.
    Meeting* at = nullptr;
    unsigned long round = 0;
};

struct Block {
    Meeting all;
    // Per warp and mask.
    std::map<std::pair<unsigned, unsigned>, Meeting> warps;
    char* memory = nullptr;
};

struct Machine {
    ucontext_t scheduler;
    std::vector<Fiber> fibers;
    Fiber* current = nullptr;
    uint64_t random = 1;
    void (*kernel)(void*) = nullptr;
    void* kernel_context = nullptr;
    // Stores that are under way: they land in any order, but for one address in theirs.
    std::vector<std::pair<uint4*, uint4>> under_way;

    unsigned draw(unsigned n)
    {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (unsigned)((random >> 11) % n);
    }

    void land(size_t which)
    {
        size_t first = 0;
        while (under_way[first].first != under_way[which].first) {
            ++first;
        }
        *under_way[first].first = under_way[first].second;
        under_way.erase(under_way.begin() + (long)first);
    }
};

Machine machine;

void leave()
{
    swapcontext(&machine.current->context, &machine.scheduler);
}

// Waits for all `size` members; returns the round that just ended.
unsigned long meet(Meeting& meeting, unsigned size)
{
    const unsigned long round = meeting.round;
    if (++meeting.arrived == size) {
        meeting.arrived = 0;
        ++meeting.round;
        if (machine.draw(2) == 0) {
            leave();
        }
        return round;
    }
    Fiber& me = *machine.current;
    me.at = &meeting;
    me.round = round;
    leave();
    return round;
}

void run_fiber()
{
    machine.kernel(machine.kernel_context);
    machine.current->done = true;
    leave();
}

void start(Fiber& fiber)
{
    fiber.stack.resize(1 << 16);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_fiber, 0);
}

bool can_go_on(const Fiber& fiber)
{
    return !fiber.done && (fiber.at == nullptr || fiber.at->round != fiber.round);
}

// Runs these blocks at once, in the order that the seed says.
void run_blocks(unsigned first, unsigned count, unsigned threads, unsigned grid, size_t shared)
{
    std::vector<Block> blocks(count);
    machine.fibers = std::vector<Fiber>(count * threads);
    for (unsigned i = 0; i < count * threads; ++i) {
        Fiber& fiber = machine.fibers[i];
        fiber.block = &blocks[i / threads];
        if (fiber.block->memory == nullptr) {
            fiber.block->memory = guarded(shared, 0xff);
        }
        fiber.self = {{i % threads, 0, 0}, {first + i / threads, 0, 0}, {threads, 1, 1}, {grid, 1, 1}, fiber.block->memory};
        start(fiber);
    }
    std::vector<unsigned> ready;
    // Spinning fibers never end by themselves.
    unsigned long quiet = 0;
    // A burst of one block keeps others far behind; single steps interleave them finely.
    while (true) {
        ready.clear();
        for (unsigned i = 0; i < machine.fibers.size(); ++i) {
            if (can_go_on(machine.fibers[i])) {
                ready.push_back(i);
            }
        }
        if (ready.empty()) {
            break;
        }
        const unsigned favourite = machine.draw(count);
        const unsigned steps = 1 + machine.draw(2 * (unsigned)ready.size());
        for (unsigned step = 0; step < steps; ++step) {
            unsigned chosen = ready[machine.draw((unsigned)ready.size())];
            if (machine.draw(4) != 0 && chosen / threads != favourite) {
                chosen = ready[machine.draw((unsigned)ready.size())];
            }
            Fiber& fiber = machine.fibers[chosen];
            if (!can_go_on(fiber)) {
                continue;
            }
            fiber.at = nullptr;
            machine.current = &fiber;
            self = fiber.self;
            swapcontext(&machine.scheduler, &fiber.context);
            if (!machine.under_way.empty() && machine.draw(3) == 0) {
                machine.land(machine.draw((unsigned)machine.under_way.size()));
                quiet = 0;
            }
            if (++quiet > 20000000) {
                fail("threads look for words that never come");
            }
        }
    }
    while (!machine.under_way.empty()) {
        machine.land(0);
    }
    for (const Fiber& fiber : machine.fibers) {
        if (!fiber.done) {
            fail("threads wait for others that never come");
        }
    }
}

struct Buffer {
    char* data = nullptr;
    size_t length = 0;
    // 0: float, 1: f16, 2: bf16, 3: int
    int elem = 0;
};

std::vector<Buffer> buffers;
std::vector<char*> workspaces;
std::vector<unsigned> epochs;

size_t bytes_of(int elem)
{
    return elem == 0 || elem == 3 ? 4 : 2;
}

void set(Buffer& buffer, size_t i, float x)
{
    switch (buffer.elem) {
    case 0: ((float*)buffer.data)[i] = x; break;
    case 1: ((f16*)buffer.data)[i] = x; break;
    case 2: ((bf16*)buffer.data)[i] = x; break;
    default: std::memcpy(buffer.data + 4 * i, &x, 4);
    }
}

float get(const Buffer& buffer, size_t i)
{
    float x;
    switch (buffer.elem) {
    case 0: return ((float*)buffer.data)[i];
    case 1: return ((f16*)buffer.data)[i];
    case 2: return ((bf16*)buffer.data)[i];
    default: std::memcpy(&x, buffer.data + 4 * i, 4); return x;
    }
}

} // namespace

void yield()
{
    leave();
}

void meet_block()
{
    meet(machine.current->block->all, self.block_size.x);
}

float exchange(unsigned mask, float x, int from)
{
    const unsigned own = lane();
    if ((mask >> own & 1u) == 0) {
        fail("a lane shuffles outside its mask");
    }
    Meeting& meeting = machine.current->block->warps[{self.thread.x / 32, mask}];
    meeting.values[meeting.round % 2][own] = x;
    const unsigned long round = meet(meeting, (unsigned)__builtin_popcount(mask));
    const bool there = from >= 0 && from < 32 && (mask >> from & 1u) != 0;
    return there ? meeting.values[round % 2][from] : x;
}

unsigned draw(unsigned n)
{
    return machine.draw(n);
}

void store_later(void* at, const void* bits)
{
    uint4 word;
    std::memcpy(&word, bits, 16);
    if ((uintptr_t)at % 16 != 0) {
        fail("a word that is not aligned");
    }
    machine.under_way.emplace_back((uint4*)at, word);
}

// A cooperative launch runs all blocks at once, any other one after another.
void launch(unsigned grid, unsigned block, size_t shared, bool cooperative, void (*kernel)(void*), void* context)
{
    machine.kernel = kernel;
    machine.kernel_context = context;
    if (cooperative) {
        run_blocks(0, grid, block, grid, shared);
        return;
    }
    for (unsigned i = 0; i < grid; ++i) {
        run_blocks(i, 1, block, grid, shared);
    }
}

// Follows a script: one command a line, read from a file.
int follow(char** files, void (*launch_number)(int, Run&))
{
    FILE* commands = std::fopen(files[1], "r");
    FILE* given = std::fopen(files[2], "rb");
    FILE* result = std::fopen(files[3], "wb");
    if (commands == nullptr || given == nullptr || result == nullptr) {
        fail("a file is missing");
    }
    Run run{};
    run.buffer = [](int i) -> void* { return buffers[i].data; };
    run.workspace = [](int i) -> void* { return workspaces[i]; };
    run.epoch = [](int i) { return epochs[i]; };
    char what[32];
    while (std::fscanf(commands, "%31s", what) == 1) {
        long long a = 0, b = 0, c = 0;
        const std::string word = what;
        if (word == "run") { // T, B, seed
            if (std::fscanf(commands, "%d %d %llu", &run.T, &run.B, (unsigned long long*)&machine.random) != 3) fail("run");
        } else if (word == "buffer") { // length, elem; fresh memory is not a number
            if (std::fscanf(commands, "%lld %lld", &a, &b) != 2) fail("buffer");
            Buffer buffer;
            buffer.length = (size_t)a;
            buffer.elem = (int)b;
            buffer.data = guarded(buffer.length * bytes_of(buffer.elem), 0xff);
            buffers.push_back(buffer);
        } else if (word == "read") { // buffer: its elements come next in the input
            if (std::fscanf(commands, "%lld", &a) != 1) fail("read");
            for (size_t i = 0; i < buffers[a].length; ++i) {
                float x;
                if (std::fread(&x, 4, 1, given) != 1) fail("input ends early");
                set(buffers[a], i, x);
            }
        } else if (word == "fill") { // buffer, number
            float x;
            if (std::fscanf(commands, "%lld %f", &a, &x) != 2) fail("fill");
            for (size_t i = 0; i < buffers[a].length; ++i) set(buffers[a], i, x);
        } else if (word == "workspace") { // bytes
            if (std::fscanf(commands, "%lld", &a) != 1) fail("workspace");
            workspaces.push_back(guarded((size_t)a, 0));
            epochs.push_back(0);
        } else if (word == "epoch") { // workspace, epoch
            if (std::fscanf(commands, "%lld %lld", &a, &b) != 2) fail("epoch");
            epochs[a] = (unsigned)b;
        } else if (word == "launch") { // number, blocks
            if (std::fscanf(commands, "%lld %lld", &a, &c) != 2) fail("launch");
            run.grid = (unsigned)c;
            launch_number((int)a, run);
        } else if (word == "write") { // buffer
            if (std::fscanf(commands, "%lld", &a) != 1) fail("write");
            for (size_t i = 0; i < buffers[a].length; ++i) {
                const float x = get(buffers[a], i);
                std::fwrite(&x, 4, 1, result);
            }
        } else {
            fail(what);
        }
    }
    std::fclose(result);
    return 0;
}

} // namespace shim
