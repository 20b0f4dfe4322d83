select 'simple'::regconfig, 'english'::regconfig, 'english_stem'::regdictionary, null::regconfig, '-'::regconfig;
select 'simple'::regconfig::text, pg_typeof('simple'::regconfig), array['simple'::regconfig];
select c from (values ('simple'::regconfig), ('german')) v(c);
select 'nosuch'::regconfig;
select 'nosuch'::regdictionary;
