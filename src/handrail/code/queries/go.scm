(function_declaration name: (_) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: (type_identifier) @scope)) name: (_) @name) @method
(method_declaration receiver: (parameter_list (parameter_declaration type: (pointer_type (type_identifier) @scope))) name: (_) @name) @method
(method_declaration receiver: (parameter_list (parameter_declaration type: (generic_type type: (type_identifier) @scope))) name: (_) @name) @method
(method_declaration receiver: (parameter_list (parameter_declaration type: (pointer_type (generic_type type: (type_identifier) @scope)))) name: (_) @name) @method
(type_spec name: (_) @name type: (struct_type)) @struct
(type_spec name: (_) @name type: (interface_type)) @interface
(type_spec name: (_) @name) @type
(type_alias name: (_) @name) @type
(field_declaration name: (_) @name) @field
(method_elem name: (_) @name) @method
(source_file (const_declaration (const_spec (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @variable)))
(comment) @comment

;;; analysis
(function_declaration parameters: (parameter_list (_) @parameter))
(method_declaration parameters: (parameter_list (_) @parameter))
(const_spec value: (_) @value)
(var_spec value: (_) @value)
(struct_type (field_declaration_list (field_declaration !name type: (_) @base)))
(import_spec path: (_) @import)
(if_statement) @branch
(for_statement) @branch
(expression_case) @branch
(type_case) @branch
(communication_case) @branch
