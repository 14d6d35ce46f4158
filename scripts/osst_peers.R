# rpart and ctree at many settings on one set of rows, for scripts/reproduce_osst.py.
#
#     Rscript scripts/osst_peers.R FOLDER
#
# FOLDER holds train.csv (time, event, features), test.csv (features) and jobs.csv (method, depth, cp, rows), one tree a
# line; rows is the least number in a leaf: 7, the default of both, for which a node of 20 may be split, or fewer, for
# which any node may.
# Written there: leaf_train.csv and leaf_test.csv, a column a tree with the leaf of each row, and facts.csv with leaves,
# depth and CPU seconds of the fit of each tree. All other settings are the defaults of rpart and partykit; ctree has no cp.

folder <- commandArgs(trailingOnly = TRUE)[1]
suppressPackageStartupMessages(library(survival))
suppressPackageStartupMessages(library(partykit))
suppressPackageStartupMessages(library(rpart))

train <- read.csv(file.path(folder, "train.csv"))
test <- read.csv(file.path(folder, "test.csv"))
jobs <- read.csv(file.path(folder, "jobs.csv"))

grow <- function(job) {
  few <- if (job$rows == 7) 20 else 2
  begin <- proc.time()
  if (job$method == "RPART") {
    control <- rpart.control(minsplit = few, minbucket = job$rows, maxdepth = job$depth, cp = job$cp)
    tree <- rpart(Surv(time, event) ~ ., data = train, control = control)
  } else {
    control <- ctree_control(minsplit = few, minbucket = job$rows, maxdepth = job$depth)
    tree <- ctree(Surv(time, event) ~ ., data = train, control = control)
  }
  spent <- proc.time() - begin
  if (job$method == "RPART") tree <- as.party(tree)
  leaf <- function(rows) as.integer(predict(tree, newdata = rows, type = "node"))
  facts <- data.frame(leaves = width(tree), deepest = depth(tree), seconds = spent[["user.self"]] + spent[["sys.self"]])
  list(facts = facts, train = leaf(train), test = leaf(test))
}

set.seed(2023)  # rpart's cross-validation draws numbers; its tree does not depend on them
grown <- lapply(seq_len(nrow(jobs)), function(k) grow(jobs[k, ]))
put <- function(table, name) write.csv(table, file.path(folder, name), row.names = FALSE)
put(do.call(rbind, lapply(grown, `[[`, "facts")), "facts.csv")
put(do.call(cbind, lapply(grown, `[[`, "train")), "leaf_train.csv")
put(do.call(cbind, lapply(grown, `[[`, "test")), "leaf_test.csv")
