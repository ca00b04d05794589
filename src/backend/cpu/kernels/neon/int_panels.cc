// Products with packed integer weights of the NEON path.
#include "backend/cpu/kernels/neon/dot.inl"
// The shared body uses the dot product above.
#include "backend/cpu/kernels/body/int_panels.inl"
