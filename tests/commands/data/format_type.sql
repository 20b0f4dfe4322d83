select format_type(1186, 0);
select format_type(1186, 100);
select format_type(1186, 393215);
select format_type(1186, 6553599);
select format_type(1187, 0);
select format_type(1186, -1), format_type(1186, 524291), format_type(1186, 2147483647);
