(function_item name: (_) @name) @function
(function_signature_item name: (_) @name) @function
(struct_item name: (_) @name) @struct
(enum_item name: (_) @name) @enum
(enum_variant name: (_) @name) @constant
(union_item name: (_) @name) @union
(trait_item name: (_) @name) @trait
(impl_item type: (type_identifier) @name) @impl
(impl_item type: (generic_type type: (_) @name)) @impl
(impl_item type: (scoped_type_identifier) @name) @impl
(impl_item type: (_) @name) @impl
(mod_item name: (_) @name) @module
(type_item name: (_) @name) @type
(associated_type name: (_) @name) @type
(const_item name: (_) @name) @constant
(static_item name: (_) @name) @variable
(macro_definition name: (_) @name) @macro
(field_declaration name: (_) @name) @field
(ERROR "fn" . (identifier) @name @function)
(line_comment) @comment
(block_comment) @comment
(attribute_item) @attribute

;;; analysis
(parameters (_) @parameter)
(const_item value: (_) @value)
(static_item value: (_) @value)
(impl_item trait: (_) @base)
(trait_bounds (_) @base)
(use_declaration argument: (_) @import)
(if_expression) @branch
(for_expression) @branch
(while_expression) @branch
(loop_expression) @branch
(match_arm) @branch
