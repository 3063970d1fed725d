; inherits: c
(function_definition declarator: (function_declarator declarator: (field_identifier) @name)) @method
(function_definition declarator: (function_declarator declarator: (operator_name) @name)) @function
(function_definition declarator: (function_declarator declarator: (destructor_name) @name)) @method
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @function
(function_definition declarator: (function_declarator declarator: (qualified_identifier scope: (_) @scope name: (_) @name))) @function
(field_declaration declarator: (function_declarator declarator: (_) @name)) @method
(field_declaration declarator: (reference_declarator (function_declarator declarator: (_) @name))) @method
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @method
(declaration declarator: (function_declarator declarator: (destructor_name) @name)) @method
(class_specifier body: (field_declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @constructor))
(struct_specifier body: (field_declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @constructor))
(class_specifier name: (_) @name body: (_)) @class
(namespace_definition name: (_) @name) @namespace
(namespace_definition body: (declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @function))
(concept_definition name: (_) @name) @type
(alias_declaration name: (_) @name) @type
(template_parameter_list) @attribute

;;; analysis
(parameter_list (optional_parameter_declaration) @parameter)
(base_class_clause (type_identifier) @base)
(base_class_clause (qualified_identifier) @base)
(base_class_clause (template_type) @base)
(using_declaration (_) @import)
(for_range_loop) @branch
(catch_clause) @branch
