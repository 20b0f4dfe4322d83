\d shop.orders
\d shop.item
\d+ shop.*
\d+ archive.*
\dn+
\di shop.*
\ds shop.*
\dRp+
SELECT subname, subslotname, subenabled, substream, subpublications FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database());
