// Makes allocations of a library fail, one at a time: `watch` replaces the functions by which it asks for memory in its
// table of functions from other libraries, and nowhere else. The library itself is the one that is shipped.
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> left{-1}, made{0};  // allocations before the one that fails, and those that were asked for

bool fails() {
  made.fetch_add(1);
  return left.load() >= 0 && left.fetch_sub(1) == 0;
}

void* faulty_malloc(size_t size) { return fails() ? nullptr : std::malloc(size); }
void* faulty_calloc(size_t count, size_t size) { return fails() ? nullptr : std::calloc(count, size); }
void* faulty_aligned(size_t alignment, size_t size) { return fails() ? nullptr : std::aligned_alloc(alignment, size); }
void* faulty_new(size_t size) {
  if (fails()) throw std::bad_alloc();
  return ::operator new(size);
}

struct Replacement {
  const char* name;
  void* function;
};
const Replacement replacements[] = {{"malloc", reinterpret_cast<void*>(faulty_malloc)},
                                    {"calloc", reinterpret_cast<void*>(faulty_calloc)},
                                    {"aligned_alloc", reinterpret_cast<void*>(faulty_aligned)},
                                    {"_Znwm", reinterpret_cast<void*>(faulty_new)}};

struct Search {
  const char* path;
  int replaced;
};

void replace(void** slot, void* function) {
  const uintptr_t page = sysconf(_SC_PAGESIZE), start = reinterpret_cast<uintptr_t>(slot) & ~(page - 1);
  if (mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) == 0) *slot = function;
}

int visit(dl_phdr_info* library, size_t, void* data) {
  Search* search = static_cast<Search*>(data);
  if (std::strcmp(library->dlpi_name, search->path) != 0) return 0;
  ElfW(Addr) found[DT_JMPREL + 1] = {};
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag > 0 && entry->d_tag <= DT_JMPREL) found[entry->d_tag] = entry->d_un.d_ptr;
    }
  }
  auto* symbols = reinterpret_cast<const ElfW(Sym)*>(found[DT_SYMTAB]);
  auto* names = reinterpret_cast<const char*>(found[DT_STRTAB]);
  const ElfW(Addr) tables[][2] = {{found[DT_RELA], found[DT_RELASZ]}, {found[DT_JMPREL], found[DT_PLTRELSZ]}};
  for (auto& [start, size] : tables) {
    auto *entry = reinterpret_cast<const ElfW(Rela)*>(start), *end = reinterpret_cast<const ElfW(Rela)*>(start + size);
    for (; entry != nullptr && entry < end; ++entry) {
      const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(entry->r_info)];
      for (const Replacement& each : replacements) {
        if (symbol.st_shndx != SHN_UNDEF || std::strcmp(names + symbol.st_name, each.name) != 0) continue;
        replace(reinterpret_cast<void**>(library->dlpi_addr + entry->r_offset), each.function);
        ++search->replaced;
      }
    }
  }
  return 1;
}

}  // namespace

// Watches the library that was loaded from a path; how many functions were replaced.
extern "C" int watch(const char* path) {
  Search search{path, 0};
  dl_iterate_phdr(visit, &search);
  return search.replaced;
}

// The allocation after `count` more fails; none does if that is negative.
extern "C" void fail_after(long count) {
  made.store(0);
  left.store(count);
}

// How many were asked for since.
extern "C" long asked() { return made.load(); }
