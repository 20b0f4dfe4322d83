\set a 'x y'
\set b 'it''s'
\echo plain   two	three ;
\echo 'single quoted' 'it''s' 'tab\tnew\nline' 'oct\101 hex\x42 \q \'' '\xc3\xa9' ''
\echo "double quoted" "say ""hi""" a"b c"d 'x'y"z"
\echo :a :'a' :"a" :'b' :b :none :'none' :"none" :{?a} :{?none} ':a' ":a"
\echo a:a:b :: : :a;
\echo `echo from the shell` `printf 'two\n\n'`end `echo :a` `echo :'b'` `echo :'none'`
\echo 'never closed
\echo "never closed
\echo a 'b' `never closed
\echo -n no newline \\ \echo after it
\echo é 日本 '日本'
