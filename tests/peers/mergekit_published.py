"""Configurations in the shapes that people publish, over the models of
mergekit_models."""

PUBLISHED = {
    "a gradient slerp with filters": """
slices:
  - sources:
      - model: la-base
        layer_range: [0, 3]
      - model: la-dense
        layer_range: [0, 3]
merge_method: slerp
base_model: la-base
parameters:
  t:
    - filter: self_attn
      value: [0, 0.5, 0.3, 0.7, 1]
    - filter: mlp
      value: [1, 0.5, 0.7, 0.3, 0]
    - value: 0.5
dtype: bfloat16
""",
    "a slerp of models": """
models:
  - model: ./la-base
  - model: ./la-dense
merge_method: slerp
base_model: ./la-base
parameters: {t: 0.35}
dtype: float16
""",
    "a base that is listed without parameters": """
models:
  - model: la-base
    # no parameters necessary for base model
  - model: la-dense
    parameters:
      density: [1, 0.7, 0.1]
      weight: 1.0
  - model: la-wide
    parameters:
      density: 0.33
      weight:
        - filter: mlp
          value: 0.5
        - value: 0
merge_method: ties
base_model: la-base
parameters:
  normalize: true
  int8_mask: true
dtype: float16
""",
    "flow maps": """
models:
  - model: la-base
  - model: la-dense
    parameters: {weight: 0.4, density: 0.53}
  - model: la-wide
    parameters: {weight: .3, density: 0.53}
merge_method: dare_ties
base_model: la-base
parameters: {int8_mask: true}
dtype: bfloat16
""",
    "a tool's dump, keys by the alphabet": """
base_model: la-base
dtype: bfloat16
merge_method: task_arithmetic
parameters:
  normalize: false
slices:
- sources:
  - layer_range: [0, 3]
    model: la-base
  - layer_range: [0, 3]
    model: la-dense
    parameters:
      weight: 0.9
""",
    "a module, and numbers for booleans": """
base_model: la-base
dtype: float32
out_dtype: bfloat16
merge_method: della
modules:
  default:
    slices:
    - sources:
      - layer_range: [0, 3]
        model: la-words
        parameters:
          density: 0.6
          epsilon: 0.12
          weight: 0.5
      - layer_range: [0, 3]
        model: la-base
parameters:
  int8_mask: 1.0
  lambda: 1.05
  normalize: 1.0
tokenizer: {}
""",
    "a base with a weight": """
models:
  - model: la-base   # the anchor
    parameters:
      weight: 1          # yes, on the base too
      density: 1
  - model: la-dense      # prose
    parameters:
      weight: 0.25       # light touch
      density: 0.7
merge_method: della      # was ties
base_model: la-base  # see above
""",
    "out_dtype alone, and a tokenizer": """
merge_method: della_linear
base_model: la-base
models:
  - model: la-words
    parameters:
      weight: [0.1, 0.3, 0.5]
      density: 0.5
      epsilon: 0.25
out_dtype: bfloat16
tokenizer:
  source: la-words
""",
    "a name, and weights that do nothing": """
name: mix-09
merge_method: model_stock
base_model: la-base
models:
  - model: la-dense
    parameters:
      weight:
        - filter: o_proj
          value: [2, 1]
        - value: 1
  - model: la-wide
dtype: float32
out_dtype: bfloat16
tokenizer_source: base
""",
    "adapters, one on the base": """
models:
  - model: la-base+ad-plain
    parameters:
      weight: 1
  - model: la-dense@3f2a9c1+./ad-scaled@v2
    parameters:
      weight: 0.5
merge_method: task_arithmetic
base_model: la-base+ad-plain
dtype: bfloat16
""",
    "a frankenmerge": """
slices:
  - sources: [{model: la-base, layer_range: [0, 2]}]
  - sources: [{model: la-dense, layer_range: [1, 3]}]
merge_method: passthrough
dtype: float16
""",
    "layers that are silenced": """
slices:
  - sources:
      - model: la-base
        layer_range: [0, 2]
  - sources:
      - model: la-base
        layer_range: [2, 3]
        parameters:
          scale:
            - filter: o_proj
              value: 0.0
            - filter: down_proj
              value: 0.0
            - value: 1.0
merge_method: passthrough
""",
    "a revision beside the model": """
models:
  - model: la-base
    revision: v1.1
    parameters:
      weight: 0.5
  - model: la-dense
    parameters:
      weight: 0.5
merge_method: linear
""",
    "documents that have names": """
name: first
merge_method: linear
models:
  - {model: la-base, parameters: {weight: 0.5}}
  - {model: la-dense, parameters: {weight: 0.5}}
---
name: final
merge_method: slerp
base_model: first
models:
  - model: first
  - model: la-wide
parameters:
  t: 0.5
""",
    "an exponent that is a text to YAML": """
merge_method: karcher
models:
  - model: la-base
  - model: la-wide
parameters:
  max_iter: 15
  tol: 1e-10
dtype: bfloat16
""",
    "anchors and merge keys": """
common: &common
  density: 0.5
  weight: 0.3
models:
  - model: la-base
  - model: la-dense
    parameters: *common
  - model: la-wide
    parameters:
      <<: *common
      weight: 0.6
merge_method: ties
base_model: la-base
""",
    "tokens, zero and another's": """
merge_method: linear
models:
  - {model: la-base, parameters: {weight: 1}}
  - {model: la-words, parameters: {weight: 1}}
tokenizer:
  source: union
  tokens:
    "<|start|>":
      source: {kind: zero}
    "<|end|>":
      source: {kind: model_token, model: la-words, token: "</s>"}
      force: true
  pad_to_multiple_of: 64
""",
    "a map for a model": """
merge_method: linear
models:
  - model:
      model: {path: la-base, revision: main}
      lora: {path: ad-plain}
    parameters: {weight: 1.0}
""",
    "weights of a slice over one for all": """
slices:
  - sources:
      - model: la-base
        layer_range: [0, 3]
      - model: la-dense
        layer_range: [0, 3]
    parameters:
      weight:
        - {filter: self_attn, value: 0.4}
        - {filter: mlp, value: 0.6}
parameters:
  weight: 0.5
merge_method: linear
dtype: bfloat16
""",
    "a condition that is in no list": """
merge_method: linear
models:
  - model: la-base
    parameters:
      weight: {filter: mlp, value: 0.5}
  - model: la-dense
    parameters: {weight: 1}
parameters: {weight: 0.1}
""",
}
