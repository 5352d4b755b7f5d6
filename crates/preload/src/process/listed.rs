//! `execl`, `execlp` and `execle`, whose arguments are listed in the call.
//!
//! A function with a variable number of arguments is none that Rust can define. Each of these
//! puts those that came in registers in front of those on the stack, so that all of them are
//! an array, ended as `execv` wants it, and hands that on.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int};

use super::{environ, execve, execvp};
use crate::real::Strings;

macro_rules! listed {
    ($($name:ident => $then:ident,)*) => {
        $(
            /// As POSIX has it; more arguments follow, the last of which is null.
            ///
            /// # Safety
            /// As there.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(path: *const c_char, first: *const c_char) -> c_int {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    ".cfi_startproc",
                    "endbr64",
                    "pop r11",
                    ".cfi_def_cfa_offset 0",
                    ".cfi_register rip, r11",
                    "push r9",
                    "push r8",
                    "push rcx",
                    "push rdx",
                    "push rsi",
                    ".cfi_def_cfa_offset 40",
                    "mov rsi, rsp",
                    "push r11",
                    ".cfi_def_cfa_offset 48",
                    ".cfi_offset rip, -48",
                    "call {then}",
                    "pop r11",
                    ".cfi_def_cfa_offset 40",
                    ".cfi_register rip, r11",
                    "add rsp, 40",
                    ".cfi_def_cfa_offset 0",
                    "push r11",
                    ".cfi_def_cfa_offset 8",
                    ".cfi_offset rip, -8",
                    "ret",
                    ".cfi_endproc",
                    then = sym $then,
                );
                #[cfg(target_arch = "x86")]
                naked_asm!(
                    ".cfi_startproc",
                    "lea eax, [esp + 8]",
                    "mov edx, [esp + 4]",
                    "sub esp, 4",
                    "push eax",
                    "push edx",
                    ".cfi_adjust_cfa_offset 12",
                    "call {then}",
                    "add esp, 12",
                    ".cfi_adjust_cfa_offset -12",
                    "ret",
                    ".cfi_endproc",
                    then = sym $then,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    ".cfi_startproc",
                    "hint #34",
                    "sub sp, sp, #80",
                    ".cfi_def_cfa_offset 80",
                    "stp x29, x30, [sp]",
                    ".cfi_offset x29, -80",
                    ".cfi_offset x30, -72",
                    "mov x29, sp",
                    "str x1, [sp, #24]",
                    "stp x2, x3, [sp, #32]",
                    "stp x4, x5, [sp, #48]",
                    "stp x6, x7, [sp, #64]",
                    "add x1, sp, #24",
                    "bl {then}",
                    "ldp x29, x30, [sp]",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "add sp, sp, #80",
                    ".cfi_def_cfa_offset 0",
                    "ret",
                    ".cfi_endproc",
                    then = sym $then,
                );
                #[cfg(target_arch = "riscv64")]
                naked_asm!(
                    ".cfi_startproc",
                    "addi sp, sp, -64",
                    ".cfi_def_cfa_offset 64",
                    "sd ra, 0(sp)",
                    ".cfi_offset ra, -64",
                    "sd a1, 8(sp)",
                    "sd a2, 16(sp)",
                    "sd a3, 24(sp)",
                    "sd a4, 32(sp)",
                    "sd a5, 40(sp)",
                    "sd a6, 48(sp)",
                    "sd a7, 56(sp)",
                    "addi a1, sp, 8",
                    "call {then}",
                    "ld ra, 0(sp)",
                    ".cfi_restore ra",
                    "addi sp, sp, 64",
                    ".cfi_def_cfa_offset 0",
                    "ret",
                    ".cfi_endproc",
                    then = sym $then,
                );
                #[cfg(target_arch = "arm")]
                naked_asm!(
                    "push {{r1, r2, r3}}",
                    "mov r1, sp",
                    "push {{lr}}",
                    "bl {then}",
                    "pop {{lr}}",
                    "add sp, sp, #12",
                    "bx lr",
                    then = sym $then,
                );
            }
        )*
    };
}

listed! {
    execl => at,
    execlp => named,
    execle => with_variables,
}

unsafe extern "C" fn at(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the caller's; the array ends with null, as the list does.
    unsafe { execve(path, arguments, environ) }
}

unsafe extern "C" fn named(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as there.
    unsafe { execvp(path, arguments) }
}

unsafe extern "C" fn with_variables(path: *const c_char, arguments: Strings) -> c_int {
    let mut end = arguments;
    // SAFETY: as there; behind the last of them are the variables.
    unsafe {
        while !(*end).is_null() {
            end = end.add(1);
        }
        let variables = end.add(1).cast::<Strings>();
        execve(path, arguments, *variables)
    }
}
