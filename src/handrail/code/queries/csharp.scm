(namespace_declaration name: (_) @name) @namespace
(file_scoped_namespace_declaration name: (_) @name) @namespace
(class_declaration name: (_) @name) @class
(struct_declaration name: (_) @name) @struct
(interface_declaration name: (_) @name) @interface
(record_declaration name: (_) @name) @record
(enum_declaration name: (_) @name) @enum
(enum_member_declaration name: (_) @name) @constant
(delegate_declaration name: (_) @name) @type
(constructor_declaration name: (_) @name) @constructor
(destructor_declaration name: (_) @name) @method
(method_declaration name: (_) @name) @method
(local_function_statement name: (_) @name) @function
(property_declaration name: (_) @name) @property
(indexer_declaration "this" @name) @property
(operator_declaration operator: _ @name) @method
(conversion_operator_declaration type: (_) @name) @method
(event_declaration name: (_) @name) @field
(field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
(event_field_declaration (variable_declaration (variable_declarator name: (_) @name))) @field
(comment) @comment
(attribute_list) @attribute

;;; analysis
(parameter_list (parameter) @parameter)
(base_list (_) @base)
(using_directive (_) @import)
(if_statement) @branch
(for_statement) @branch
(foreach_statement) @branch
(while_statement) @branch
(do_statement) @branch
(switch_section) @branch
(switch_expression_arm) @branch
(catch_clause) @branch
