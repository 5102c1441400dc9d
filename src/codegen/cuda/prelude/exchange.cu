// What blocks exchange: three numbers and the epoch they belong to, written and read as one.
struct Word {
    float number[3];
    unsigned epoch;
};

// Writes a word for other blocks. Its 16 bytes become visible together (single-copy atomic), so no fence is needed.
__device__ __forceinline__ void publish(Word* at, const Word& word)
{
    asm volatile(
        "{\n"
        "    .reg .b64 low, high;\n"
        "    .reg .b128 word;\n"
        "    mov.b64 low, {%1, %2};\n"
        "    mov.b64 high, {%3, %4};\n"
        "    mov.b128 word, {low, high};\n"
        "    st.relaxed.gpu.global.b128 [%0], word;\n"
        "}"
        :
        : "l"(__cvta_generic_to_global(at)), "f"(word.number[0]), "f"(word.number[1]), "f"(word.number[2]), "r"(word.epoch)
        : "memory");
}

// Reads a word that another block writes, as it is at this moment; all 16 bytes are of one write.
__device__ __forceinline__ Word peek(const Word* at)
{
    Word word;
    asm volatile(
        "{\n"
        "    .reg .b64 low, high;\n"
        "    .reg .b128 word;\n"
        "    ld.relaxed.gpu.global.b128 word, [%4];\n"
        "    mov.b128 {low, high}, word;\n"
        "    mov.b64 {%0, %1}, low;\n"
        "    mov.b64 {%2, %3}, high;\n"
        "}"
        : "=f"(word.number[0]), "=f"(word.number[1]), "=f"(word.number[2]), "=r"(word.epoch)
        : "l"(__cvta_generic_to_global(at))
        : "memory");
    return word;
}

// Waits until words carry an epoch: the words from[0], from[stride], ... of the N blocks owner(0), owner(1), ..., of which
// those are skipped whose owner is -1. All are asked for at once, and again only those that have not come.
template <int N, class Owner> __device__ __forceinline__ void receive(Word (&got)[N], const Word* from, int stride, unsigned epoch, const Owner& owner)
{
#pragma unroll
    for (int i = 0; i < N; ++i) {
        got[i].epoch = ~epoch;
    }
    bool waiting = true;
    for (unsigned looks = 0; waiting; ++looks) {
        waiting = false;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (owner(i) >= 0 && got[i].epoch != epoch) {
                got[i] = peek(from + owner(i) * stride);
                waiting = true;
            }
        }
        // Words that take this long are a sign of a shared device: others may need the time.
        if (looks > 4096u) {
            __nanosleep(1000);
        }
    }
}
