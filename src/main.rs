//! The binary `rehearse`: the command line.

mod cli;

/// Configs and messages are many small strings, which the allocators of the system's libraries are slow with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
