(function_definition name: (_) @name) @function
(program (variable_assignment name: (_) @name) @variable)
(variable_assignments (variable_assignment name: (_) @name) @variable)
(declaration_command (variable_assignment name: (_) @name) @variable)
(declaration_command ["declare" "readonly" "typeset"] (variable_name) @name @variable)
(if_statement (variable_assignment name: (_) @name) @variable)
(else_clause (variable_assignment name: (_) @name) @variable)
(comment) @comment

;;; analysis
(variable_assignment value: (_) @value)
(if_statement) @branch
(elif_clause) @branch
(for_statement) @branch
(c_style_for_statement) @branch
(while_statement) @branch
(case_item) @branch
