// Asks the system to let this process use AMX tiles.
#pragma once

namespace headrace {

/// Whether this process may use AMX tiles. Linux grants their 8 KB of register state on request
/// only, to the process as a whole: threads that exist and threads to come. False where the system
/// or the processor has no AMX. Source: Linux, Documentation/arch/x86/xstate.rst.
bool request_amx_permission();

}  // namespace headrace
