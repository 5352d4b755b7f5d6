//! Where threads begin: calls `prepare`, and then goes over to the program's function
//! without coming back. Nothing of ours is on the stack while that runs, so that a thread
//! which exits or is cancelled unwinds as it does without us, and a backtrace is the
//! same. A compiler does not promise that of any function in Rust.

use core::ffi::c_void;

use crate::real::Start;

/// A function and its argument, in the two registers in which they come back.
#[cfg(target_pointer_width = "64")]
#[repr(C)]
pub struct Call(usize, usize);

/// The function in the lower half and its argument in the upper one.
#[cfg(target_pointer_width = "32")]
pub type Call = u64;

pub fn call(start: Start, argument: *mut c_void) -> Call {
    let (start, argument) = (start as usize, argument as usize);
    #[cfg(target_pointer_width = "64")]
    let call = Call(start, argument);
    #[cfg(target_pointer_width = "32")]
    let call = u64::from(argument as u32) << 32 | u64::from(start as u32);
    call
}

unsafe extern "C" {
    #[link_name = "milieu_preload_begin"]
    pub fn begin(record: *mut c_void) -> *mut c_void;
}

macro_rules! begin {
    ($($line:literal),* $(,)?) => {
        core::arch::global_asm!(
            ".text",
            ".p2align 4",
            ".hidden milieu_preload_begin",
            ".globl milieu_preload_begin",
            ".type milieu_preload_begin, %function",
            "milieu_preload_begin:",
            ".cfi_startproc",
            $($line,)*
            ".cfi_endproc",
            ".size milieu_preload_begin, . - milieu_preload_begin",
            prepare = sym super::prepare,
        );
    };
}

#[cfg(target_arch = "x86_64")]
begin!(
    "endbr64",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {prepare}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "mov rdi, rdx",
    "jmp rax",
);

#[cfg(target_arch = "x86")]
begin!(
    "mov eax, [esp + 4]",
    "sub esp, 8",
    ".cfi_adjust_cfa_offset 8",
    "push eax",
    ".cfi_adjust_cfa_offset 4",
    "call {prepare}",
    "add esp, 12",
    ".cfi_adjust_cfa_offset -12",
    "mov [esp + 4], edx",
    "jmp eax",
);

#[cfg(target_arch = "aarch64")]
begin!(
    "hint #34",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_adjust_cfa_offset 16",
    ".cfi_offset x30, -8",
    ".cfi_offset x29, -16",
    "mov x29, sp",
    "bl {prepare}",
    "ldp x29, x30, [sp], #16",
    ".cfi_adjust_cfa_offset -16",
    ".cfi_restore x30",
    ".cfi_restore x29",
    "mov x16, x0",
    "mov x0, x1",
    "br x16",
);

#[cfg(target_arch = "riscv64")]
begin!(
    "addi sp, sp, -16",
    ".cfi_adjust_cfa_offset 16",
    "sd ra, 8(sp)",
    ".cfi_offset ra, -8",
    "call {prepare}",
    "ld ra, 8(sp)",
    ".cfi_restore ra",
    "addi sp, sp, 16",
    ".cfi_adjust_cfa_offset -16",
    "mv t1, a0",
    "mv a0, a1",
    "jr t1",
);

#[cfg(target_arch = "arm")]
begin!(
    ".arm",
    "push {{r3, lr}}",
    "bl {prepare}",
    "pop {{r3, lr}}",
    "mov r2, r0",
    "mov r0, r1",
    "bx r2",
);
