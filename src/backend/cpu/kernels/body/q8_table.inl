// The kernels of q8 and q12 pages, made from an instruction set's two products. The including file
// has these before this one: a class of products (see attention_q8.inl), and round_weights.
#pragma once

#include "backend/cpu/kernels/body/attention_q8.inl"
#include "backend/cpu/kernels/body/q8_rows.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {
namespace {

template <class Products>
constexpr Q8Kernels q8_table() {
  return {
      .store = store_q8,
      .quantize_queries = quantize_queries,
      .attend = attend_q8<Products>,
      .finish_row = finish_row,
  };
}

}  // namespace
}  // namespace headrace::HEADRACE_ISA_NAMESPACE
