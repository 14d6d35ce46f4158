# The constants of test_competing.py: riskRegression's Score on the rows that its function score_rows() makes.
#   python -c "from test_competing import write_rows; write_rows('rows.csv')" && Rscript reference_score.R rows.csv
library(riskRegression)
library(survival)
library(prodlim)
d <- read.csv(commandArgs(TRUE)[1])
times <- c(3, 6, 9)
risk <- as.matrix(d[, c("f3", "f6", "f9")])
for (cause in 1:2) {
  s <- Score(list(m = risk), Hist(time, cause) ~ 1, data = d, cause = cause, times = times, cens.model = "km",
             metrics = c("auc", "brier"), se.fit = FALSE, null.model = FALSE, conf.int = FALSE)
  cat(cause, "brier", sprintf("%.12f", s$Brier$score$Brier), "\n")
  cat(cause, "auc", sprintf("%.12f", s$AUC$score$AUC), "\n")
}
