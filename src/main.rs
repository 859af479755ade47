//! The binary `rehearse`; see [`mcp_rehearsal::cli`].

/// Configs and messages are many small texts, which the allocators of the system's libraries are slow with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    mcp_rehearsal::cli::main()
}
