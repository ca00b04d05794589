// Memory that was freed, and that the allocator keeps for what comes next.
#pragma once

namespace headrace {

/// Gives it back to the system, as far as the C library can; nothing where it cannot. Takes some
/// milliseconds where there is much. One call at once: another thread's returns at once meanwhile.
void give_back_freed_memory();

/// From now on blocks of 4 MiB and more go back as soon as they are freed, and of what is free at
/// the end of a heap, of which threads have their own, no more than that is kept: by itself the C
/// library keeps more the larger the blocks were that it has seen. Nothing where it cannot.
void keep_little_freed_memory();

}  // namespace headrace
