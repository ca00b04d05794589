// Products with packed integer weights of the NEON path.
#include "backend/cpu/kernels/neon/dot.inl"
// What multiplies one form of activations uses the dot product above.
#include "backend/cpu/kernels/body/rows_two_planes.inl"
// The shared body uses that.
#include "backend/cpu/kernels/body/int_panels.inl"
