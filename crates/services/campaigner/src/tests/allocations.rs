//! Counts the heap bytes that each thread of a test holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed, each allocation rounded up as allocators do.
pub fn allocated_bytes() -> isize {
    BYTES.get()
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn note(layout: Layout, sign: isize) {
    let bytes = layout.size().next_multiple_of(16) as isize;
    // A thread that is ending no longer has a count.
    let _ = BYTES.try_with(|counted| counted.set(counted.get() + sign * bytes));
}

#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without; this one passes everything on"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout, 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(layout, -1);
        unsafe { System.dealloc(pointer, layout) }
    }
}
