-- nothing yet
SELECT 1; -- behind
   -- before
/* block ; */ SELECT 2;
SELECT -- inside ; 'quoted
  3; -- x
SELECT /* a /* nested ; */ still ; */ 4;
/* over
lines ; -- no end */
SELECT 5 - - 6; SELECT 7 --8;
;
SELECT 9 */* comment ; */ 10;
SELECT 11 +--12;
13;
/***/;/*/ ; */;
-- last
