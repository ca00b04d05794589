// Products with packed integer weights of the NEON path, with the dot-product extension.
#include "backend/cpu/kernels/neon/dot_product.inl"
// The shared body uses the dot product above.
#include "backend/cpu/kernels/body/int_panels.inl"
