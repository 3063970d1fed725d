(function_definition declarator: (_) @name) @function
(translation_unit (declaration declarator: (_) @name) @variable)
(preproc_ifdef (declaration declarator: (_) @name) @variable)
(preproc_if (declaration declarator: (_) @name) @variable)
(preproc_else (declaration declarator: (_) @name) @variable)
(preproc_elif (declaration declarator: (_) @name) @variable)
(struct_specifier name: (_) @name body: (_)) @struct
(union_specifier name: (_) @name body: (_)) @union
(enum_specifier name: (_) @name body: (_)) @enum
(type_definition declarator: (_) @name) @type
(preproc_def name: (_) @name) @macro
(preproc_function_def name: (_) @name) @macro
(field_declaration declarator: (_) @name) @field
(enumerator name: (_) @name) @constant
(comment) @comment

;;; analysis
(parameter_list (parameter_declaration) @parameter)
(init_declarator value: (_) @value)
(preproc_include path: (_) @import)
(if_statement) @branch
(for_statement) @branch
(while_statement) @branch
(do_statement) @branch
(case_statement value: (_)) @branch
