(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(arguments (class name: (_) @name) @class)
(return_statement (class name: (_) @name) @class)
(assignment_expression right: (class name: (_) @name) @class)
(method_definition name: (_) @name) @method
(field_definition property: (_) @name value: (arrow_function)) @method
(field_definition property: (_) @name) @field
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression left: (member_expression object: (_) @scope property: (_) @name) right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(pair key: (string (string_fragment) @name) value: [(arrow_function) (function_expression)]) @function
(arguments (function_expression name: (_) @name) @function)
(parenthesized_expression (function_expression name: (_) @name) @function)
(return_statement (function_expression name: (_) @name) @function)
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(program (lexical_declaration (variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)])) @variable))
(program (lexical_declaration (variable_declarator name: (array_pattern (identifier) @name)) @variable))
(ERROR "function" . (identifier) @name @function)
(ERROR "class" . (identifier) @name @class)
(comment) @comment

;;; analysis
(formal_parameters (_) @parameter)
(arrow_function parameter: (_) @parameter)
(variable_declarator value: (_) @value)
(class_heritage (identifier) @base)
(class_heritage (member_expression) @base)
(import_statement source: (_) @import)
(export_statement source: (_) @import)
(if_statement) @branch
(for_statement) @branch
(for_in_statement) @branch
(while_statement) @branch
(do_statement) @branch
(switch_case) @branch
(catch_clause) @branch
