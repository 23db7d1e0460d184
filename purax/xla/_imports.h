/* Replaces functions that one library of the process takes from others, for that library alone: what it calls through
   its table of imported functions. On glibc and 64 bits; elsewhere nothing is replaced. */

#ifndef PURAX_IMPORTS_H
#define PURAX_IMPORTS_H

#if defined(__GLIBC__) && defined(__LP64__)
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    const char *name;
    void *function;
} Replacement;

/* The address of the slot is in memory that the linker may have made read-only. */
static int set_slot(void **slot, void *function) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)slot & ~(page - 1);
    if (mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0) return 0;
    __atomic_store_n(slot, function, __ATOMIC_SEQ_CST);
    return 1;
}

/* How many slots of a library now hold one of the replacements, a list that ends with a NULL name. */
static int replace_imports(const struct dl_phdr_info *library, const Replacement *replacements) {
    ElfW(Addr) found[DT_JMPREL + 1] = {0}, relative = 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag > 0 && entry->d_tag <= DT_JMPREL) found[entry->d_tag] = entry->d_un.d_ptr;
            if (entry->d_tag == DT_RELACOUNT) relative = entry->d_un.d_val; /* they come first, and name nothing */
        }
    }
    const ElfW(Sym) *symbols = (const void *)found[DT_SYMTAB];
    const char *names = (const char *)found[DT_STRTAB];
    if (symbols == NULL || names == NULL) return 0;
    const struct { ElfW(Addr) start, size; } tables[] = {
        {found[DT_RELA] + relative * sizeof(ElfW(Rela)), found[DT_RELASZ] - relative * sizeof(ElfW(Rela))},
        {found[DT_JMPREL], found[DT_PLTREL] == DT_RELA ? found[DT_PLTRELSZ] : 0},
    };
    int replaced = 0;
    for (int i = 0; i < 2; i++) {
        if (found[i == 0 ? DT_RELA : DT_JMPREL] == 0) continue;
        const ElfW(Rela) *entry = (const void *)tables[i].start;
        const ElfW(Rela) *end = (const void *)(tables[i].start + tables[i].size);
        for (; entry < end; entry++) {
            const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(entry->r_info)];
            if (symbol->st_name == 0 || symbol->st_shndx != SHN_UNDEF) continue;
            for (const Replacement *one = replacements; one->name != NULL; one++)
                if (strcmp(names + symbol->st_name, one->name) == 0)
                    replaced += set_slot((void **)(library->dlpi_addr + entry->r_offset), one->function);
        }
    }
    return replaced;
}
#endif
#endif
